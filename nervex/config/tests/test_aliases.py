import pytest

from nervex.config import ALIASES, ConfigError, compile_config
from nervex.config.tree import get_path, has_path, pop_path, set_path


@pytest.mark.parametrize(
    'old, value, new',
    [
        ('replay_buffer.maxlen', 64, 'replay_buffer.armor.meta_maxlen'),
        ('replay_buffer.agent.replay_buffer_size', 64, 'replay_buffer.agent.meta_maxlen'),
        ('replay_buffer.agent.buffer_length', 64, 'replay_buffer.agent.meta_maxlen'),
        ('replay_buffer.agent.max_use', 7, 'replay_buffer.agent.max_reuse'),
        ('policy.learn.train_iteration', 7, 'policy.learn.train_step'),
        ('policy.learn.update_per_collect', 7, 'policy.learn.train_step'),
        ('evaluator.stop_value', 7, 'evaluator.stop_val'),
        ('env.stop_value', 7, 'evaluator.stop_val'),
        ('policy.cuda', False, 'policy.use_cuda'),
        ('learner.use_cuda', False, 'policy.use_cuda'),
        ('policy.priority', True, 'policy.use_priority'),
        ('policy.type', 'fake', 'policy.policy_type'),
        ('env.type', 'fake', 'env.env_type'),
        ('env.manager.type', 'base', 'env.env_manager_type'),
        ('env_manager.type', 'base', 'env.env_manager_type'),
        ('env.manager.shared_memory', False, 'env.manager.shared_memory'),
        ('env_manager.shared_memory', False, 'env.manager.shared_memory'),
        ('env.collector_env_num', 3, 'env.actor_env_num'),
        ('collector.n_sample', 7, 'actor.n_sample'),
        ('policy.collect.n_sample', 7, 'actor.n_sample'),
        ('policy.collect.collector.collect_print_freq', 7, 'actor.collect_print_freq'),
        ('policy.eval.evaluator.eval_freq', 7, 'evaluator.eval_freq'),
        ('policy.other.eps', dict(type='exp', start=0.5), 'policy.command.eps'),
        ('policy.other.replay_buffer.replay_buffer_size', 64, 'replay_buffer.armor.meta_maxlen'),
        ('policy.nstep', 3, 'policy.learn.algo.nstep'),
        ('policy.discount_factor', 0.5, 'policy.learn.algo.discount_factor'),
        ('policy.learn.target_update_freq', 9, 'policy.learn.algo.target_update_freq'),
        ('policy.model.obs_shape', 4, 'policy.model.obs_dim'),
        ('policy.model.action_shape', 2, 'policy.model.action_dim'),
        ('policy.model.encoder_hidden_size_list', [8], 'policy.model.hidden_dim_list'),
    ],
)
def test_an_older_spelling_becomes_todays(config, old, value, new):
    pop_path(config, new.replace('armor', 'agent'))
    if 'replay_buffer' in old:
        del config['replay_buffer']
    set_path(config, old, value)
    resolved = compile_config(config)
    expected = dict(value, end=0.1, decay=10000) if isinstance(value, dict) else value
    assert get_path(resolved, new) == expected
    if old != new:
        assert not has_path(resolved, old)


def test_both_spellings_are_fine_with_one_value_and_an_error_with_two(config):
    config['policy']['learn'].update(train_step=4, update_per_collect=4)
    assert compile_config(config).policy.learn.train_step == 4
    config['policy']['learn']['update_per_collect'] = 5
    with pytest.raises(ConfigError) as caught:
        compile_config(config)
    (problem,) = caught.value.problems
    assert problem.startswith('policy.learn.update_per_collect: got 5, but policy.learn.train_step is 4')
    assert 'keep only policy.learn.train_step' in problem


def test_sections_under_both_names_are_merged(config):
    config['collector'] = dict(n_sample=8, traj_print_freq=3)
    assert compile_config(config).actor.traj_print_freq == 3
    config['collector']['n_sample'] = 9
    with pytest.raises(ConfigError, match=r'collector.n_sample: got 9, but actor.n_sample is 8'):
        compile_config(config)


def test_a_class_that_declares_an_older_name_itself_keeps_it(config, fakes):
    base = fakes['FakePolicyBase']
    learn = dict(update_per_collect=2, target_update_freq=5)
    own = type('Own', (base,), dict(config=dict(discount_factor=0.9, learn=learn)))
    config['policy'].update(discount_factor=0.8, learn=dict(update_per_collect=6, target_update_freq=7))
    policy = compile_config(config, policy=own).policy
    assert policy.discount_factor == 0.8 and policy.learn.update_per_collect == 6 and policy.learn.train_step == 1
    assert policy.learn.target_update_freq == 7


def test_nothing_moves_to_a_setting_that_nobody_knows(config, fakes):
    own = type('Own', (fakes['FakePolicyBase'],), {})  # reads cfg.discount_factor itself
    config['policy'].update(discount_factor=0.8)
    assert compile_config(config, policy=own).policy.discount_factor == 0.8


def test_a_model_keeps_the_spelling_of_its_own_signature(config):
    class Own:
        def __init__(self, obs_shape, action_shape):
            pass

    config['policy']['model'] = dict(obs_shape=4, action_shape=2)
    assert compile_config(config, model=Own).policy.model == dict(obs_shape=4, action_shape=2)


def test_the_later_dialect_as_a_whole(fakes):
    config = dict(
        env=dict(
            collector_env_num=8,
            evaluator_env_num=5,
            n_evaluator_episode=5,
            stop_value=195,
            manager=dict(shared_memory=True),
            type='fake',
        ),
        env_manager=dict(type='base'),
        policy=dict(
            type='fake',
            cuda=False,
            priority=False,
            nstep=3,
            discount_factor=0.97,
            model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[128, 128, 64], dueling=True),
            learn=dict(update_per_collect=5, batch_size=64, learning_rate=0.001),
            collect=dict(n_sample=8),
            eval=dict(evaluator=dict(eval_freq=40)),
            other=dict(
                eps=dict(type='exp', start=0.95, end=0.1, decay=10000),
                replay_buffer=dict(replay_buffer_size=20000),
            ),
        ),
    )
    resolved = compile_config(config)
    assert resolved.env.actor_env_num == 8 and resolved.evaluator == dict(n_episode=5, stop_val=195, eval_freq=40)
    assert resolved.policy.learn.train_step == 5 and resolved.actor.n_sample == 8
    assert resolved.policy.collect.algo.nstep == 3 and 'other' not in resolved.policy
    assert resolved.replay_buffer.armor.meta_maxlen == 20000 and resolved.policy.model.hidden_dim_list == [128, 128, 64]


def test_no_alias_leads_to_another_old_name():
    assert not set(ALIASES.values()) & set(ALIASES)
