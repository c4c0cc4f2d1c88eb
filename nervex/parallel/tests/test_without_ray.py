"""What a user sees who has not installed Ray."""

import subprocess
import sys

import pytest


def test_without_ray_one_line_says_what_to_install(monkeypatch, capsys):
    from nervex.entry.cli import main

    monkeypatch.setitem(sys.modules, 'ray', None)
    with pytest.raises(SystemExit) as e:
        main(['-m', 'parallel', '-c', 'cartpole_dqn'])
    assert e.value.code == 2 and 'pip install -e ".[parallel]"' in capsys.readouterr().err


def test_serial_mode_does_not_import_ray():
    code = (
        'import sys, nervex.entry.serial_entry, nervex.entry.cli, nervex.parallel.settings; '
        'from nervex.config import compile_config; compile_config("cartpole_dqn"); '
        'print("ray" in sys.modules)'
    )
    out = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout
    assert out.split()[-1] == 'False'
