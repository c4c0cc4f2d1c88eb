"""``nervex -q``: registries, single entries, the reference, the schema."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nervex.config.query import query
from nervex.utils import registries
from nervex.utils.errors import UnknownNameError


def lines(*args):
    return list(query(args[0], args[1:]))


@pytest.mark.parametrize('name', registries)
def test_every_registry_and_every_entry_of_it_can_be_shown(name):
    listed = lines(name)
    assert len(listed) == len(registries[name].query())
    for entry in registries[name].query():
        if registries[name].query_details([entry])[entry].startswith('nervex.'):
            text = lines(name, entry)
            assert text[0].startswith(f'{registries[name].what} {entry}: nervex.') and len(text) > 3, entry
            assert text[1].startswith('  '), f'{entry} has no docstring'


def test_built_ins_are_known_before_anything_is_imported():
    code = (
        'import sys\nfrom nervex.config.query import query\n'
        'print(*query("learner_hook"), *query("wrapper"), *query("policy"))\n'
        'assert "torch" not in sys.modules'
    )
    out = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout
    assert 'save_ckpt' in out and 'frame_stack' in out and 'rainbow_dqn' in out


def test_a_policy_is_shown_with_its_settings():
    text = lines('policy', 'dqn')
    assert text[0] == 'policy dqn: nervex.policy.dqn:DQNPolicy'
    row = next(line for line in text if line.startswith('learn.algo.target_update_freq'))
    assert 'int >= 1' in row and ' 100 ' in row + ' '
    assert any(line.startswith('learn.batch_size') for line in text)  # of its base class


def test_a_model_is_shown_with_its_arguments():
    row = next(line for line in lines('model', 'fc_discrete_net') if line.startswith('obs_dim'))
    assert 'int' in row and row.endswith('needed')


def test_wrong_names_say_the_nearest():
    with pytest.raises(UnknownNameError, match="unknown registry 'polisy'; did you mean 'policy'"):
        lines('polisy')
    with pytest.raises(UnknownNameError, match="unknown policy 'dqm'; did you mean 'dqn'"):
        lines('policy', 'dqm')
    with pytest.raises(UnknownNameError, match="unknown section 'actr'; did you mean 'actor'"):
        lines('settings', 'actr')


def test_the_schema_is_json_and_knows_the_policy():
    schema = json.loads('\n'.join(lines('schema', 'dqn')))
    learn = schema['properties']['policy']['properties']['learn']
    double_q = learn['properties']['algo']['properties']['double_q']
    assert double_q['type'] == 'boolean' and double_q['default'] is True
    assert learn['additionalProperties'] is False
    env = schema['properties']['env']
    assert env['properties']['actor_env_num']['minimum'] == 1
    assert env['additionalProperties'] and env['properties']['manager']['additionalProperties']  # those of any class


def test_the_reference_in_the_docs_is_what_the_command_writes():
    page = Path(__file__).parents[3] / 'docs' / 'en' / 'settings.md'
    written = ''.join(f'{line}\n' for line in lines('settings'))
    assert page.read_text(encoding='utf-8') == written, 'write it anew: nervex -q settings > docs/en/settings.md'
