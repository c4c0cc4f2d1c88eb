import pytest

from nervex.config import ConfigError, compile_config
from nervex.config.tree import get_path, set_path


def problem_of(config, **kwargs):
    with pytest.raises(ConfigError) as caught:
        compile_config(config, **kwargs)
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


@pytest.mark.parametrize(
    'given, value, follows',
    [
        ('policy.learn.algo.nstep', 3, 'policy.collect.algo.nstep'),
        ('policy.collect.algo.nstep', 3, 'policy.learn.algo.nstep'),
        ('policy.collect.traj_len', 16, 'actor.traj_len'),
        ('actor.traj_len', 16, 'policy.collect.traj_len'),
        ('policy.collect.traj_len', 'inf', 'actor.traj_len'),
    ],
)
def test_a_fact_is_stated_once(config, given, value, follows):
    set_path(config, given, value)
    resolved = compile_config(config)
    assert get_path(resolved, given) == get_path(resolved, follows) == value


def test_env_counts_reach_a_policy_that_asks_for_them(config, fakes):
    assert 'env_num' not in compile_config(config).policy.collect
    own = type(
        'Own',
        (fakes['FakePolicy'],),
        dict(config=dict(collect=dict(env_num=None), eval=dict(env_num=None))),
    )
    resolved = compile_config(config, policy=own)
    assert resolved.policy.collect.env_num == 8 and resolved.policy.eval.env_num == 5
    config['policy']['collect'] = dict(env_num=4)
    assert problem_of(config, policy=own).startswith('env.actor_env_num: env.actor_env_num=8, policy.collect.env_num=4')


def test_a_policy_that_does_not_know_the_second_place_does_not_get_it(config, fakes):
    declared = dict(learn=dict(algo=dict(nstep=2)), collect=dict(algo=dict(x=1)))
    own = type('Own', (fakes['FakePolicyBase'],), dict(config=declared))
    assert compile_config(config, policy=own).policy.collect.algo == dict(x=1)


@pytest.mark.parametrize(
    'pair',
    [
        {'policy.learn.algo.nstep': 1, 'policy.collect.algo.nstep': 3},
        {'policy.collect.traj_len': 1, 'actor.traj_len': 'inf'},
    ],
)
def test_two_statements_that_differ_name_both(config, pair):
    for path, value in pair.items():
        set_path(config, path, value)
    problem = problem_of(config)
    assert all(f'{path}={value!r}' in problem for path, value in pair.items()) and 'give it once' in problem


def test_inf_is_infinity_in_either_spelling(config):
    config['policy']['collect'] = dict(traj_len='inf', unroll_len=8)
    config['actor']['traj_len'] = float('inf')
    compile_config(config)


def test_samples_or_episodes_and_not_both(config):
    assert compile_config(config).actor.n_episode is None
    config['actor']['n_episode'] = 2
    assert problem_of(config) == 'actor.n_sample: got 8 and actor.n_episode = 2; give only one of them'
    config['actor'] = dict(n_episode=2)
    assert compile_config(config).actor.n_sample is None
    config['actor'] = {}
    assert problem_of(config).startswith('actor.n_sample: missing; give it, or actor.n_episode')
    config['actor'] = dict(n_sample=None, n_episode=1)
    assert compile_config(config).actor.n_episode == 1


def test_a_training_sample_fits_in_its_window(config):
    config['policy']['collect'] = dict(traj_len=4, unroll_len=8)
    problem = problem_of(config)
    assert problem.startswith('policy.collect.unroll_len: got 8, must be at most policy.collect.traj_len = 4')
    config['policy']['collect']['traj_len'] = 'inf'
    compile_config(config)


def test_batch_sizes_by_buffer_are_checked_with_their_buffer(config):
    config['replay_buffer'] = dict(policy=dict(meta_maxlen=100), value=dict(meta_maxlen=1000))
    config['policy']['learn']['batch_size'] = dict(policy=64, value=512)
    compile_config(config)
    config['policy']['learn']['batch_size'] = dict(policy=512, value=512)
    assert "size of buffer 'policy'" in problem_of(config)
