"""``nervex doctor``: what is installed and what this machine has, without importing any of it."""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from operator import eq, ge, gt, le, lt, ne

from nervex.version import __VERSION__

_CORE = ('torch', 'numpy', 'gymnasium', 'click', 'rich')
_MISSING = '! missing'
_LITTLE_DISK, _LITTLE_SHARED = 2e9, 256e6  # bytes


def examine() -> Iterator[str]:
    """The lines of the report; a line with an exclamation mark in front says what is missing, and what to do."""
    yield f'nervex    {__VERSION__}, in {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}'
    yield f'python    {platform.python_version()}, {platform.system()} {platform.machine()}'
    yield f'packages  {", ".join(f"{name} {_version(name) or _MISSING}" for name in _CORE)}'
    yield f'cores     {_cores()} of {os.cpu_count()}; memory {_memory()}'
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


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1


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
            has = ', '.join(f'{name} {_version(name)}' for name, _ in _requirements('nervex', extra) if _version(name))
            text = f"! {', '.join(missing)}: pip install 'nervex[{extra}]'" if missing else has
            yield f'extra     {extra:12} {text}'


def _requirements(package: str, extra: str) -> Iterator[tuple[str, list[str]]]:
    """What an extra of a package asks for: names, with the extras of these."""
    for text in metadata.requires(package) or []:
        found = re.match(r'([\w.-]+)(?:\[([\w,\s-]+)\])?', text)
        if found and re.search(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]", text) and _for_this_python(text):
            yield found[1], [name.strip() for name in (found[2] or '').split(',') if name.strip()]


def _for_this_python(requirement: str) -> bool:
    """Whether what a requirement says of Python's version holds here."""
    said = re.findall(r"python_version\s*(<=|>=|==|!=|<|>)\s*['\"]([\d.]+)['\"]", requirement)
    compare = {'<': lt, '<=': le, '>': gt, '>=': ge, '==': eq, '!=': ne}
    return all(compare[how](sys.version_info[:2], tuple(map(int, number.split('.')[:2]))) for how, number in said)


def _missing(package: str, extra: str) -> Iterator[str]:
    """The packages of an extra that are not installed."""
    for name, extras in _requirements(package, extra):
        if _version(name) is None:
            yield name
        else:
            for below in extras:
                yield from _missing(name, below)
