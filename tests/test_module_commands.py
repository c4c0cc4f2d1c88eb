"""Commands that are modules of app_zoo: what goes wrong is one message and an exit code, as of ``nervex``."""

import importlib
import os
from importlib.util import find_spec

import pytest

from nervex.entry.cli import told_in_one_message

BOT, TRACE = 'gfootball.entry.bot', 'gfootball.envs.tests.trace'
SUMO, ROCK, POKER = 'sumo.entry.beside_rules', 'matrix_games.entry.strategies', 'poker.entry.exploit'
no_engine = pytest.mark.skipif(find_spec('gfootball') is not None, reason='gfootball is installed')


def ends(name, args, capsys):
    """Exit code of the command, and what it says."""
    with pytest.raises(SystemExit) as stop:
        importlib.import_module(f'app_zoo.{name}').main(*args)
    return stop.value.code, capsys.readouterr().err


@no_engine
@pytest.mark.parametrize('name, args', [(BOT, (['--out', 'bot'],)), (TRACE, ())])
def test_football_without_its_engine_names_the_script_that_brings_it(name, args, capsys):
    code, said = ends(name, args, capsys)
    assert code == 1 and said.startswith('error: the env gfootball needs the package') and said.count('\n') == 1
    assert 'app_zoo/gfootball/install.sh' in said and not os.path.exists('bot')


@pytest.mark.parametrize(
    'name, args, told',
    [
        (BOT, ['--episodes', '0'], "--episodes: got '0', must be an int >= 1"),
        (SUMO, ['--episodes', 'x'], "--episodes: got 'x', must be an int >= 1"),
        (SUMO, ['--net', 'nowhere'], "unknown net 'nowhere'"),
        (SUMO, ['--net', 'pyproject.toml'], 'error: pyproject.toml: no net'),
        (SUMO, ['--runs', 'nowhere'], 'nowhere: no such checkpoint file'),
        (ROCK, ['nowhere'], 'nowhere: holds no snapshots'),
        (POKER, ['nowhere'], 'nowhere/log/commander/selfplay.csv'),
    ],
)
def test_what_is_wrong_is_one_message(name, args, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'pyproject.toml').write_text('[build-system]')
    code, said = ends(name, (args,), capsys)
    assert code in (1, 2) and told in said and 'Traceback' not in said, said


def test_what_is_our_own_mistake_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError), told_in_one_message():
        raise ZeroDivisionError
