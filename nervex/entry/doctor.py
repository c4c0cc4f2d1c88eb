"""``nervex doctor``: what is installed and what this machine has, without importing any of it."""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import os
import platform
import re
import shutil
from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement

from nervex.version import __VERSION__

_CORE = ('torch', 'numpy', 'gymnasium', 'click', 'rich')
_MISSING = '! missing'
_LITTLE_DISK, _LITTLE_SHARED = 2e9, 256e6  # bytes


def examine() -> Iterator[str]:
    """The lines of the report; a line with an exclamation mark in front says what is missing, and what to do."""
    yield f'nervex    {__VERSION__}, in {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}'
    yield f'python    {platform.python_version()}, {platform.system()} {platform.machine()}'
    yield f'packages  {", ".join(f"{name} {_version(name) or _MISSING}" for name in _CORE)}'
    cores = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1
    yield f'cores     {cores} of {os.cpu_count()}; memory {_memory()}'
    yield f'GPU       {_gpu()}'
    threads = os.environ.get('OMP_NUM_THREADS')
    yield f'threads   of torch: 1, or {threads or "one a core"} where layers are 256 wide; policy.torch_threads sets it'
    for name, path, least in (('disk', '.', _LITTLE_DISK), ('shared', '/dev/shm', _LITTLE_SHARED)):
        if os.path.isdir(path):
            free = shutil.disk_usage(path).free
            little = '' if free > least else ' ! that is little'
            yield f'{name:9} {free / 1e9:.1f} GB free in {os.path.abspath(path)}{little}'
    yield from _extras()


def _version(package: str) -> str | None:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return None


def _memory() -> str:
    with contextlib.suppress(OSError, TypeError), open('/proc/meminfo', encoding='ascii') as f:
        found = dict(re.findall(r'(\w+):\s+(\d+) kB', f.read()))
        return f'{int(found["MemAvailable"]) / 1e6:.1f} of {int(found["MemTotal"]) / 1e6:.1f} GB free'
    return 'unknown'


def _gpu() -> str:
    """What the driver has, and what torch was built for."""
    names = []
    for path in sorted(glob.glob('/proc/driver/nvidia/gpus/*/information')):
        with open(path, encoding='utf-8', errors='replace') as f:
            names += re.findall(r'Model:\s*(.+)', f.read())
    spec = importlib.util.find_spec('torch')
    cuda = None
    if spec is not None and spec.origin is not None:
        with contextlib.suppress(OSError), open(spec.origin.replace('__init__', 'version'), encoding='utf-8') as f:
            cuda = re.search(r"^cuda\b[^=\n]*= '([^']+)'", f.read(), re.MULTILINE)
    build = f'torch is built for CUDA {cuda[1]}' if cuda else 'torch is built for CPUs'
    if names and not cuda:
        build = f'! {build}: install one for CUDA, as pytorch.org/get-started says'
    return f'{", ".join(names) or "none of NVIDIA"}; {build}'


def _extras() -> Iterator[str]:
    """Each extra, with what of it is there, or the line that installs it."""
    try:
        extras = metadata.metadata('nervex').get_all('Provides-Extra') or []
    except metadata.PackageNotFoundError:
        yield 'extras    ! nervex is not installed, so that they are not known: pip install -e . in its folder'
        return
    for extra in extras:
        if extra != 'all':
            missing = sorted(set(_missing('nervex', extra)))
            names = [wanted.name for wanted in _requirements('nervex', extra)]
            has = ', '.join(f'{name} {_version(name)}' for name in names if _version(name))
            text = f"! {', '.join(missing)}: pip install 'nervex[{extra}]'" if missing else has
            yield f'extra     {extra:12} {text}'


def _requirements(package: str, extra: str) -> list[Requirement]:
    """What an extra of a package asks for on this Python."""
    found = map(Requirement, metadata.requires(package) or [])
    return [one for one in found if one.marker and 'extra' in str(one.marker) and one.marker.evaluate({'extra': extra})]


def _missing(package: str, extra: str) -> Iterator[str]:
    """The packages of an extra that are not installed."""
    for wanted in _requirements(package, extra):
        if _version(wanted.name) is None:
            yield wanted.name
        else:
            for below in wanted.extras:
                yield from _missing(wanted.name, below)
