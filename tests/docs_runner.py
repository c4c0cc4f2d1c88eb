"""Runs the examples of documentation pages: a small server, so that nervex is imported once and every page forks."""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import json
import os
import re
import shlex
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# training commands that set no limit of their own end here: long enough to beat the untrained network
SHORT = ('-o', 'commander.max_env_step=1500', '-o', 'evaluator.eval_freq=100')
SHELLS = ('bash', 'sh', 'console')
_FENCE = re.compile(r'^(\s*)```(\w*)')
_MARK = re.compile(r'<!--\s*(skip|fails):\s*(.+?)\s*-->')
_INLINE = re.compile(r'`(nervex -[^`]+)`')
_PLACEHOLDER = re.compile(r'\b[A-Z]{2,}\b|\.\.\.|…')
_FILE = re.compile(r'^#\s*([\w/]+\.(?:py|yaml))\s*$')


@dataclass
class Block:
    """One fenced block, or one inline command, of a page."""

    language: str
    text: str
    line: int
    skip: str | None = None
    fails: int | None = None


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks of a page, with the marks before them, and the inline commands without placeholders."""
    found: list[Block] = []
    lines, mark, n = page.read_text(encoding='utf-8').splitlines(), {}, 0
    while n < len(lines):
        fence = _FENCE.match(lines[n])
        if fence is None:
            comment = _MARK.search(lines[n])
            if comment:
                mark[comment[1]] = comment[2]
            elif lines[n].strip():
                mark = {}
            for command in _INLINE.findall(lines[n]):
                if not _PLACEHOLDER.search(command):
                    found.append(Block('bash', command, n + 1))
            n += 1
            continue
        start, indent = n + 1, len(fence[1])
        n += 1
        while not lines[n].strip().startswith('```'):
            n += 1
        text = '\n'.join(line[indent:] for line in lines[start:n])
        fails = int(mark['fails']) if 'fails' in mark else None
        found.append(Block(fence[2], text, start + 1, mark.get('skip'), fails))
        mark, n = {}, n + 1
    return found


def commands_of(text: str) -> list[str]:
    """The ``nervex`` commands of a shell block: prompts, line ends with a backslash and ``&&`` are understood."""
    lines = text.replace('\\\n', ' ').splitlines()
    parts = [part.strip().removeprefix('$ ') for line in lines for part in line.split('&&')]
    return [part for part in parts if part.startswith('nervex ')]


def arguments_of(command: str) -> list[str]:
    """What the shell would hand over, with globs expanded and training cut short."""
    given = shlex.split(command, comments=True)[1:]
    arguments = [path for word in given for path in (sorted(glob.glob(word)) if '*' in word else [word]) or [word]]
    trains = 'serial' in arguments or arguments[:1] == ['train']
    if trains and not any(word.startswith('commander.') or word == '--steps' for word in arguments):
        arguments += SHORT
    return arguments


def run_command(command: str, fails: int | None) -> None:
    """Run one command as the console script does; a wrong exit code is an AssertionError."""
    from nervex.entry.cli import main

    arguments, code = arguments_of(command), 0
    needs = {'plot': 'matplotlib', '--video': 'imageio_ffmpeg', '--gif': 'imageio_ffmpeg'}
    for word, package in needs.items():
        if word in arguments and importlib.util.find_spec(package) is None:
            return
    print(f'$ {command}', flush=True)
    try:
        main(arguments)
    except SystemExit as e:
        code = e.code or 0
    assert code == (fails or 0), f'{command}: exit code {code}, expected {fails or 0}'


def run_block(block: Block, namespace: dict) -> None:
    """Write a file, execute Python, or run commands."""
    name = _FILE.match(block.text.splitlines()[0]) if block.text else None
    if name and block.language in ('python', 'yaml'):
        Path(name[1]).parent.mkdir(parents=True, exist_ok=True)
        Path(name[1]).write_text(block.text + '\n', encoding='utf-8')
    elif block.language == 'python':
        exec(compile(block.text, '<block>', 'exec'), namespace)
    elif block.language in SHELLS:
        for command in commands_of(block.text):
            run_command(command, block.fails)


def run_page(page: Path, folder: Path) -> dict | None:
    """All blocks of a page in order, in ``folder``; answers where and what went wrong, what is missing, or None."""
    from nervex.utils.errors import ExtraMissingError

    os.chdir(folder)
    os.symlink(ROOT / 'app_zoo', folder / 'app_zoo')
    sys.path.insert(0, str(folder))
    namespace: dict = {'__name__': '__main__'}
    for block in blocks_of(page):
        if block.skip is None:
            try:
                run_block(block, namespace)
            except ExtraMissingError as e:
                return {'missing': str(e)}
            except BaseException:
                return {'line': block.line, 'error': traceback.format_exc()}
    return None


def serve() -> None:
    """Lines of JSON: a page and an empty folder in; None, or line, error and output of the failed block, out."""
    import torch

    import nervex.entry.serial_entry
    import nervex.entry.video
    import nervex.policy.dqn
    import nervex.policy.ppo  # noqa: F401

    torch.set_num_threads(1)
    for line in sys.stdin:
        page, folder = (Path(path) for path in json.loads(line))
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            with open(folder / 'output.txt', 'w', encoding='utf-8') as output, contextlib.suppress(BaseException):
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                os.write(writer, json.dumps(run_page(page, folder)).encode())
            os._exit(0)
        os.close(writer)
        with open(reader, encoding='utf-8') as pipe:
            answer = pipe.read() or json.dumps({'line': 0, 'error': 'the page ended its process'})
        os.waitpid(child, 0)
        print(answer, flush=True)


if __name__ == '__main__':
    serve()
