"""What `make test` skips for lack of a package is what `make test-extras` runs, also where two processes run it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WHOLE = """
import os, pytest
if not os.path.exists('there'):
    pytest.importorskip('no_such_package')
def test_one(): pass
def test_two(): pass
"""
PARTLY = """
import os, pytest
def test_skips():
    if not os.path.exists('there'):
        pytest.skip('the package is not installed')
def test_passes(): pass
def test_by_hand(): pytest.skip('could not import pysc2')
"""


def test_two_processes_keep_one_list_and_run_what_is_on_it():
    Path('pytest.ini').write_text('[pytest]\ntestpaths = room\naddopts = --import-mode=importlib\n', encoding='utf-8')
    shutil.copy(ROOT / 'conftest.py', '.')
    Path('room').mkdir()
    for name, text in (('whole', WHOLE), ('partly', PARTLY), ('other', 'def test(): pass')):
        Path(f'room/test_{name}.py').write_text(text, encoding='utf-8')
    assert in_two() == (0, '2 passed, 3 skipped')
    kept = json.loads(Path('.pytest_cache/v/nervex/skipped_for_packages').read_text(encoding='utf-8'))
    assert kept == ['room/test_partly.py::test_skips', 'room/test_whole.py']
    assert in_two('--skipped-for-packages') == (1, '2 skipped')  # to skip it again is a failure
    Path('there').touch()
    assert in_two('--skipped-for-packages') == (0, '3 passed')


def in_two(*options):
    """Exit code and the closing line without the time."""
    command = [sys.executable, '-m', 'pytest', '-q', '-n', '2', '--dist', 'worksteal', *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=200)
    return run.returncode, run.stdout.strip().splitlines()[-1].partition(' in ')[0]
