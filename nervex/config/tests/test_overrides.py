import pytest

from nervex.config import ConfigError, compile_config
from nervex.config.overrides import override
from nervex.loader.problems import Problems


def overridden(tree, overrides):
    problems = Problems()
    override(tree, overrides, problems)
    problems.raise_if_any()
    return tree


@pytest.mark.parametrize(
    'text, value',
    [
        ('3e-4', 3e-4),
        ('7', 7),
        ('true', True),
        ('null', None),
        ('', ''),
        ('exp', 'exp'),
        ('"7"', '7'),
        ('[6, 6]', [6, 6]),
        ('{a: 1}', {'a': 1}),
        (' 5 ', 5),
        ('a=b', 'a=b'),
        ('inf', 'inf'),
        ('1e5', 1e5),
        ('./ckpt/a.tar', './ckpt/a.tar'),
    ],
)
def test_values_are_read_as_yaml(text, value):
    got = overridden({}, [f'policy.x={text}'])['policy']['x']
    assert got == value and type(got) is type(value)


def test_dicts_are_made_on_the_way():
    new = overridden(dict(policy=dict(learn=dict(a=1))), ['policy.learn.a=2', 'learner.hook.mine.freq=3'])
    assert new == dict(policy=dict(learn=dict(a=2)), learner=dict(hook=dict(mine=dict(freq=3))))


def test_a_dict_merges_and_a_list_replaces():
    config = dict(policy=dict(eps=dict(start=1, end=0), sizes=[1, 2]))
    assert overridden(config, ['policy.eps={end: 0.5}', 'policy.sizes=[3]'])['policy'] == dict(
        eps=dict(start=1, end=0.5), sizes=[3]
    )


@pytest.mark.parametrize('text', ['policy.x', '=3', 'policy..x=3', '.x=1', 'a .b=1'])
def test_the_form_must_be_right(text):
    with pytest.raises(ConfigError, match='must be written path=value'):
        overridden({}, [text])


def test_all_mistakes_come_at_once():
    with pytest.raises(ConfigError) as caught:
        overridden(dict(actor=dict(n_sample=8)), ['nothing', 'actor.n_sample.deep=1', 'policy.x=[1'])
    assert len(caught.value.problems) == 3
    assert 'actor.n_sample (8) is a value and holds no settings' in str(caught.value)


def test_an_unknown_path_is_found_by_compile(config):
    with pytest.raises(ConfigError, match=r"policy.learn.learnig_rate: unknown setting; did you mean 'learning_rate'"):
        compile_config(config, overrides=['policy.learn.learnig_rate=1'])


def test_an_override_may_add_a_declared_setting_that_the_config_leaves_out(config):
    assert compile_config(config, overrides=['commander.max_env_step=5']).commander.max_env_step == 5


def test_an_override_replaces_the_other_spelling_in_the_config(config):
    config['policy']['learn']['train_step'] = 4
    assert compile_config(config, overrides=['policy.learn.update_per_collect=9']).policy.learn.train_step == 9
    config['policy']['learn'] = dict(update_per_collect=4)
    assert compile_config(config, overrides=['policy.learn.train_step=9']).policy.learn.train_step == 9
    config['policy']['learn'] = dict(train_iteration=4)
    assert compile_config(config, overrides=['policy.learn.update_per_collect=9']).policy.learn.train_step == 9


def test_an_override_reaches_moved_sections_and_buffers(config):
    config['collector'] = config.pop('actor')
    assert compile_config(config, overrides=['actor.n_sample=3']).actor.n_sample == 3
    assert compile_config(config, overrides=['collector.n_sample=3']).actor.n_sample == 3
    config['replay_buffer'] = dict(agent=dict(replay_buffer_size=500), demo=dict(meta_maxlen=500))
    resolved = compile_config(config, overrides=['replay_buffer.agent.meta_maxlen=100'])
    assert resolved.replay_buffer.agent.meta_maxlen == 100 and resolved.replay_buffer.demo.meta_maxlen == 500
    resolved = compile_config(config, overrides=['replay_buffer.maxlen=100'])
    assert resolved.replay_buffer.agent.meta_maxlen == resolved.replay_buffer.demo.meta_maxlen == 100


def test_an_override_wins_over_the_settings_that_must_agree_with_it(config):
    config['policy']['learn']['algo'] = dict(nstep=1)
    config['policy']['collect'] = dict(algo=dict(nstep=1), traj_len=1)
    config['actor']['traj_len'] = 1
    resolved = compile_config(config, overrides=['policy.learn.algo.nstep=3', 'actor.traj_len=4'])
    assert resolved.policy.collect.algo.nstep == 3 and resolved.policy.collect.traj_len == 4
    assert compile_config(config, overrides=['policy.nstep=5']).policy.learn.algo.nstep == 5


def test_two_overrides_that_disagree_are_an_error(config):
    for pair in (
        ['actor.n_sample=3', 'actor.n_episode=3'],
        ['actor.traj_len=3', 'policy.collect.traj_len=4'],
        ['policy.learn.train_step=3', 'policy.learn.update_per_collect=4'],
    ):
        with pytest.raises(ConfigError):
            compile_config(config, overrides=pair)


def test_episodes_instead_of_samples(config):
    resolved = compile_config(config, overrides=['actor.n_episode=2'])
    assert (resolved.actor.n_sample, resolved.actor.n_episode) == (None, 2)


@pytest.mark.parametrize('word, truth', [('yes', 'true'), ('on', 'true'), ('off', 'false'), ('No', 'false')])
def test_a_word_for_a_truth_value_is_told_how_to_be_written(word, truth):
    with pytest.raises(ConfigError, match=f"policy.use_cuda.*'{word}'.*write {truth}"):
        compile_config('cartpole_dqn', overrides=[f'policy.use_cuda={word}'])


def test_graph_off_needs_no_quotes():
    resolved = compile_config('cartpole_dqn', overrides=['policy.learn.graph=off'])
    assert resolved.policy.learn.graph == 'off'
