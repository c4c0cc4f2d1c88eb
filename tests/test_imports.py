"""Imports point one way, and `import nervex` stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import nervex

ROOT = Path(nervex.__file__).parent
# package -> what it may import beside itself, utils and the standard library
ALLOWED = {
    'utils': set(),
    'design': set(),
    'loader': set(),
    'config': {'loader'},
    'data': {'loader'},
    'rl_utils': {'data', 'hpc_rl'},
    'hpc_rl': {'rl_utils'},
    'torch_utils': set(),
    'graph': {'runtime', 'torch_utils'},
    'model': {'graph', 'rl_utils', 'torch_utils'},
    'armor': {'graph', 'model', 'torch_utils'},
    'envs': set(),
    'interaction': set(),
    'policy': {'armor', 'data', 'graph', 'loader', 'model', 'rl_utils', 'torch_utils'},
    'league': {'loader'},
    'worker': {'data', 'envs', 'interaction', 'league', 'loader', 'policy', 'rl_utils', 'torch_utils'},
    'run': {
        *('armor', 'config', 'data', 'envs', 'graph', 'league', 'loader', 'policy', 'runtime', 'torch_utils', 'worker'),
    },
    'parallel': {'config', 'data', 'envs', 'interaction', 'league', 'loader', 'policy', 'run', 'worker'},
    'entry': {'config', 'data', 'envs', 'league', 'parallel', 'policy', 'run', 'runtime', 'worker'},
}


def imported_packages(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        names = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or '']
            if isinstance(node, ast.ImportFrom)
            else []
        )
        found.update(names)
    return found


def sources(package: str) -> list[Path]:
    return [p for p in (ROOT / package).rglob('*.py') if 'tests' not in p.parts]


@pytest.mark.parametrize('package', sorted(ALLOWED))
def test_a_package_imports_only_what_it_may(package):
    allowed = ALLOWED[package] | {package, 'utils', 'version'}
    for path in sources(package):
        for name in imported_packages(path):
            parts = name.split('.')
            if parts[0] == 'nervex' and len(parts) > 1:
                assert parts[1] in allowed, f'{path.relative_to(ROOT)} imports {name}'


def test_every_package_has_its_rule():
    packages = {p.name for p in ROOT.iterdir() if (p / '__init__.py').exists()}
    assert packages == set(ALLOWED)


def test_nothing_imports_app_zoo():
    for path in ROOT.rglob('*.py'):
        if 'tests' not in path.parts:
            assert not any(name.split('.')[0] == 'app_zoo' for name in imported_packages(path)), path


def test_the_front_door_imports_parallel_only_where_it_is_asked_for():
    for path in sources('entry'):
        for node in ast.parse(path.read_text(encoding='utf-8')).body:
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or '').startswith('nervex.parallel'), path


def test_generic_code_names_no_algorithm():
    for package in ('worker', 'entry', 'run', 'config', 'data', 'armor'):
        for path in sources(package):
            for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
                if isinstance(node, ast.Compare):
                    for item in [node.left, *node.comparators]:
                        assert not (isinstance(item, ast.Constant) and item.value in ('dqn', 'ppo', 'sac', 'td3')), path


HEAVY = (
    'gymnasium', 'gym', 'ray', 'numba', 'app_zoo', 'ale_py', 'matplotlib', 'torch._dynamo', 'torch.fx', 'rich', 'click',
    'tensorboardX', 'imageio', 'pygame', 'nervex.parallel', 'nervex.interaction', 'nervex.league',
)  # fmt: skip


@pytest.mark.parametrize(
    'statement, most',
    [
        ('import nervex', 3),
        ('import nervex, nervex.policy, nervex.armor', 60),
        (
            'from nervex.entry import serial_pipeline, parallel_pipeline',
            12,
        ),  # a run imports what it needs when it begins
        ('import nervex.run.build', 215),
    ],
)
def test_imports_are_light(statement, most):
    code = (
        f'import torch, sys; before = set(sys.modules); {statement}; '
        f'new = set(sys.modules) - before; print(len(new), [m for m in {HEAVY} if m in new])'
    )
    out = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout
    count, _, heavy = out.strip().partition(' ')
    assert heavy == '[]' and int(count) <= most, out
