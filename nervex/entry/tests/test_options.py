"""Options of the command that has all modes: each mode refuses what it has no use for, as the page says."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from nervex.entry.cli import MODES, cli
from nervex.entry.options import UsedOption

OPTIONS = {option.name: option for option in cli.params if isinstance(option, UsedOption)}
DOCS = Path(__file__).parents[3] / 'docs'
VALUES = {'seed': '3', 'episodes': '3', 'acts': 'greedy', 'platform': 'local', 'axis': 'seconds'}


def said(*args):
    done = CliRunner().invoke(cli, list(args))
    assert done.exit_code == 2, done.output
    return done.output


def test_every_option_but_what_chooses_the_mode_says_which_modes_use_it():
    others = {param.name for param in cli.params} - set(OPTIONS)
    assert others == {'version', 'mode', 'query_registry', 'folders'}
    assert all(option.uses['mode'] and set(option.uses['mode']) <= set(MODES) for option in OPTIONS.values())


@pytest.mark.parametrize('name', OPTIONS)
def test_a_mode_refuses_an_option_that_it_has_no_use_for_and_names_those_that_do(name):
    option = OPTIONS[name]
    for mode in set(MODES) - set(option.uses['mode']):
        text = said('-m', mode, option.opts[0], *(() if option.is_flag else (VALUES.get(name, 'x'),)))
        assert f'{option.opts[0]} ' in text and f'is for -m {option.uses["mode"][0]}' in text, text
        assert f'-m {mode} has no use for it' in text


@pytest.mark.parametrize(
    'args, told',
    [
        ('-c cartpole_dqn --acts greedy', '--acts greedy is for -m collect; -m serial has no use for it'),
        ('-m parallel -c cartpole_dqn --dry-run', '--dry-run is for -p slurm or k8s; -p local has no use for it'),
        ('-m parallel -c cartpole_dqn -ch a', '-ch is for -p slurm or k8s'),
        ('-m eval -n 3 --data a -c cartpole_dqn', '--data is for -m offline'),
        ('-q policy -n 3', '--episodes is for -m eval, collect or arena'),
        ('-m eval -c cartpole_dqn --load a --video --gif', 'give --video or --gif'),
        ('-m eval -c cartpole_dqn --load a --opponent human --gif', 'are not filmed'),
    ],
)
def test_what_is_said(args, told):
    assert told in said(*args.split())


def test_a_command_of_ones_own_takes_all_options(capsys):
    cli.main(['-m', 'builtins:print', '--acts', 'random', '--data', 'a'], standalone_mode=False)
    assert "'acts': 'random'" in capsys.readouterr().out


@pytest.mark.parametrize('language', ['en', 'zh'])
def test_the_page_tells_the_modes_of_every_option(language):
    told = {}
    for row in re.findall(r'^\| (`-.*?) \| ([a-z、, ]+) \|', (DOCS / language / 'cli.md').read_text('utf-8'), re.M):
        for flag in re.findall(r'`(-+[-a-z]+)', row[0]):
            told[flag] = set(re.split('[、, ]+', row[1]))
    assert told == {option.opts[0]: set(option.uses['mode']) for option in OPTIONS.values()}
