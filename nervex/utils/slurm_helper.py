"""What slurm tells a process: nodes, partition, and names inside an allocation."""

import os
import re
import subprocess
from collections.abc import Iterator
from itertools import islice

MOST_NODES = 10_000
_NUMBERS = r'\[[0-9]{1,9}(?:-[0-9]{1,9})?(?:,[0-9]{1,9}(?:-[0-9]{1,9})?)*\]'
_NAME = rf'(?:[^\s,\[\]]|{_NUMBERS})+'
_SHORT_FORM = re.compile(rf'{_NAME}(?:,{_NAME})*')


def node_list(text: str | None = None) -> list[str]:
    """
    Overview:
        Names from slurm's short form, e.g. ``'host-10-198-[6,8-9],login1'`` gives four names. Widths are kept
        (``[08-10]``).
    Arguments:
        - text (:obj:`str | None`): None reads SLURM_NODELIST
    """
    text = os.environ.get('SLURM_NODELIST') if text is None else text
    if not text:
        raise ValueError('no node list: SLURM_NODELIST is not set, so this is no slurm allocation')
    if not _SHORT_FORM.fullmatch(text):
        raise ValueError(f"got {text!r}, must be names of nodes in slurm's short form, such as gpu1,cpu[01-08,12]")
    parts = re.findall(r'(?:[^,\[]|\[[^\]]*\])+', text)
    names = list(islice((name for part in parts for name in _expand(part)), MOST_NODES + 1))
    if len(names) > MOST_NODES:
        raise ValueError(f'got {text!r}, must be at most {MOST_NODES} names of nodes')
    return names


def _expand(part: str) -> Iterator[str]:
    match = re.match(r'([^\[]*)\[([^\]]*)\](.*)', part)
    if match is None:
        yield part
        return
    head, inside, tail = match.groups()
    for item in inside.split(','):
        low, _, high = item.partition('-')
        for number in range(int(low), int(high or low) + 1):
            yield from (f'{head}{number:0{len(low)}}{rest}' for rest in _expand(tail))


def node_to_host(node: str) -> str:
    """Address of a node: names such as ``SH-IDC1-10-198-8-66`` carry it, others are resolved as they are."""
    match = re.search(r'(\d{1,3})-(\d{1,3})-(\d{1,3})-(\d{1,3})$', node)
    return '.'.join(match.groups()) if match else node


def node_to_partition(node: str) -> str:
    """Partition of a node, asked from ``sinfo``."""
    found = _output(['sinfo', '-h', '-n', node, '-o', '%P']).split()
    if not found:
        raise ValueError(f"slurm knows no node '{node}'")
    return found[0].rstrip('*')


def find_free_port_slurm(node: str) -> int:
    """A free port on a node of the allocation, found by a short job step there."""
    code = 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'
    return int(_output(['srun', '-w', node, '-n', '1', 'python3', '-c', code]).split()[-1])


def get_cls_info() -> dict[str, list[str]]:
    """Nodes of every partition that are idle or partly used, from ``sinfo``."""
    lines = [line.split() for line in _output(['sinfo', '-h', '-t', 'idle,mix', '-o', '%P %N']).splitlines()]
    return {line[0].rstrip('*'): node_list(line[1]) for line in lines if line}


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
