"""An installed nervex is the one that a script imports."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_a_script_beside_the_checkout_imports_the_package(tmp_path):
    clone = tmp_path / 'nervex'  # as git clone names it
    shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns('.git', 'tests', 'results', '*.pyc', '*.egg-info'))
    venv.create(tmp_path / 'venv', with_pip=True)
    python = str(tmp_path / 'venv' / 'bin' / 'python')
    subprocess.run([python, '-m', 'pip', 'install', '--quiet', '--no-deps', '-e', str(clone)], check=True)
    script = tmp_path / 'script.py'
    script.write_text('import nervex; print(nervex.enable_hpc_rl, nervex.__file__)')
    out = subprocess.run([python, str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert out.stdout.split() == ['False', str(clone / 'nervex' / '__init__.py')], out.stderr
    assert sys.prefix not in out.stdout
