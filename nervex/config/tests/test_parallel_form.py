"""Parallel configs of the older form become today's sections; mistakes in them name the right key."""

import pytest
from easydict import EasyDict

from nervex.config import ConfigError, compile_config, parallel_transform, parallel_transform_slurm
from nervex.config.parallel import coordinator_default_config, parallel_local_default_config
from nervex.config.tree import get_path, plain_copy
from nervex.config.utils import (
    parallel_transform_k8s,
    set_actor_interaction_for_coordinator,
    set_host_port,
    set_learner_interaction_for_coordinator,
)


def older_form():
    """A complete one, as people have them."""
    policy = dict(
        use_cuda=False,
        policy_type='dqn',
        import_names=['nervex.policy.dqn'],
        on_policy=False,
        model=dict(obs_dim=4, action_dim=2),
        learn=dict(batch_size=32, learning_rate=0.002, algo=dict(target_update_freq=50, discount_factor=0.95, nstep=1)),
        collect=dict(traj_len=1, unroll_len=1, algo=dict(nstep=1)),
        command=dict(eps=dict(type='linear', start=1.0, end=0.005, decay=1000)),
    )
    actor_cfg = dict(
        actor_type='zergling',
        import_names=['nervex.worker.actor.zergling_actor'],
        print_freq=10,
        traj_len=1,
        compressor='lz4',
        policy_update_freq=3,
        env_kwargs=dict(
            import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
            env_type='cartpole',
            actor_env_num=8,
            actor_episode_num=2,
            evaluator_env_num=5,
            evaluator_episode_num=2,
            eval_stop_val=195,
        ),
    )
    commander = dict(
        parallel_commander_type='solo',
        import_names=['nervex.worker.coordinator.solo_parallel_commander'],
        actor_task_space=2,
        learner_task_space=1,
        learner_cfg=dict(load_path='', use_cuda=False, dataloader=dict(batch_size=32, chunk_size=32, num_workers=0)),
        actor_cfg=actor_cfg,
        replay_buffer_cfg=dict(buffer_name=['agent'], agent=dict(meta_maxlen=100000, max_reuse=10)),
        policy=policy,
        max_iterations=5000,
        eval_interval=60,
    )
    role = dict(host='auto', port='auto', path_data='./data', path_policy='.')
    learner = dict(
        role,
        import_names=['nervex.worker.learner.comm.flask_fs_learner'],
        comm_learner_type='flask_fs',
        send_policy_freq=3,
        repeat_num=1,
        use_distributed=False,
    )
    actor = dict(role, comm_actor_type='flask_fs', queue_maxsize=8)
    interaction = dict(host='auto', port='auto')
    return EasyDict(
        coordinator=dict(actor_task_timeout=30, learner_task_timeout=600, interaction=interaction, commander=commander),
        learner0=learner,
        actor0=actor,
        actor1=dict(actor),
        actor2=dict(actor),
    )


EXPECTED = {
    'policy.policy_type': 'dqn',
    'policy.learn.learning_rate': 0.002,
    'policy.command.eps.decay': 1000,
    'env.env_type': 'cartpole',
    'env.actor_env_num': 8,
    'env.evaluator_env_num': 5,
    'actor.n_sample': 8,
    'actor.collect_print_freq': 10,
    'evaluator.n_episode': 10,
    'evaluator.stop_val': 195,
    'evaluator.eval_freq': 60,
    'commander.max_train_iter': 5000,
    'replay_buffer.agent.max_reuse': 10,
    'parallel.commander_type': 'naive',
    'parallel.comm_actor_type': 'ray',
    'parallel.comm_learner_type': 'ray',
    'parallel.actor_num': 3,
    'parallel.envs_per_actor': 8,
    'parallel.learner_num': 1,
    'parallel.publish_iters': 3,
    'parallel.import_names': None,
}


TRANSFORMS = [parallel_transform, parallel_transform_slurm, parallel_transform_k8s, plain_copy]


@pytest.mark.parametrize('transform', TRANSFORMS)
def test_the_older_form_becomes_todays_sections(transform):
    resolved = compile_config(transform(older_form()))
    assert {path: get_path(resolved, path) for path in EXPECTED} == EXPECTED
    assert compile_config(resolved) == resolved


def test_the_config_of_the_caller_is_not_changed():
    mine = older_form()
    parallel_transform(mine)
    set_host_port(mine)
    assert mine == older_form()


def test_a_config_of_todays_form_passes_unchanged_also_twice():
    once = parallel_transform(older_form())
    assert parallel_transform(once) == once


def test_hosts_are_where_roles_may_run():
    slurm = parallel_transform_slurm(older_form(), learner_node='gpu1', actor_node='cpu[08-09],big')
    assert compile_config(slurm).parallel.resources.actor.hosts == ['cpu08', 'cpu09', 'big']
    assert slurm.parallel.resources == dict(learner=dict(hosts=['gpu1']), actor=dict(hosts=['cpu08', 'cpu09', 'big']))
    mine = older_form()
    mine.actor1.host = 'n7'
    assert parallel_transform(mine).parallel.resources == dict(actor=dict(hosts=['n7']))
    today = parallel_transform(dict(policy={}, env={}), actor_host='a,b')
    assert today.parallel.resources == dict(actor=dict(hosts=['a', 'b']))


def test_modules_of_users_are_imported_and_those_of_the_package_need_not_be():
    mine = older_form()
    mine.learner0.import_names = ['my.learner', 'nervex.worker.learner.comm.flask_fs_learner']
    mine.coordinator.commander.import_names = 'my.commander'
    assert parallel_transform(mine).parallel.import_names == ['my.commander', 'my.learner']


def test_what_is_said_in_todays_words_beside_the_older_ones_counts():
    mine = older_form()
    mine.parallel = dict(actor_num=5, max_staleness=7)
    resolved = compile_config(mine, overrides=['parallel.envs_per_actor=4', 'evaluator.stop_val=100'])
    assert (resolved.parallel.actor_num, resolved.parallel.envs_per_actor) == (5, 4)
    assert (resolved.parallel.max_staleness, resolved.evaluator.stop_val) == (7, 100)


def test_several_learners_a_section_are_counted():
    mine = older_form()
    mine.learner0.repeat_num = 2
    mine.learner1 = dict(mine.learner0, repeat_num=1)
    assert parallel_transform(mine).parallel.learner_num == 3


def test_without_sections_of_roles_the_task_spaces_say_how_many():
    mine = older_form()
    for name in ('learner0', 'actor0', 'actor1', 'actor2'):
        del mine[name]
    assert parallel_transform(mine).parallel.actor_num == 2


def test_whole_episodes_are_counted_as_such():
    mine = older_form()
    mine.coordinator.commander.actor_cfg.traj_len = mine.coordinator.commander.policy.collect.traj_len = 'inf'
    assert parallel_transform(mine).actor == dict(n_episode=8, traj_len='inf', collect_print_freq=10)


@pytest.mark.parametrize(
    'path, near',
    [
        ('coordinator.actor_task_timout', 'actor_task_timeout'),
        ('coordinator.commander.actor_task_spce', 'actor_task_space'),
        ('coordinator.commander.actor_cfg.polcy_update_freq', 'policy_update_freq'),
        ('learner0.send_polcy_freq', 'send_policy_freq'),
        ('actor1.queue_maxsiz', 'queue_maxsize'),
        ('coordinator.commander.policy.learn.learning_rat', 'learning_rate'),
        ('coordinator.commander.actor_cfg.env_kwargs.evaluator_env_nm', 'evaluator_env_num'),
        ('parallel.actor_nm', 'actor_num'),
    ],
)
def test_a_wrong_key_names_the_right_one(path, near):
    mine, node = older_form(), None
    *parents, key = path.split('.')
    node = mine
    for parent in parents:
        node = node.setdefault(parent, EasyDict())
    node[key] = 1
    with pytest.raises(ConfigError, match=f"{key}: unknown setting; did you mean '{near}'"):
        compile_config(mine)


def test_a_section_that_is_no_dict_is_named():
    mine = older_form()
    mine.actor1 = 3
    with pytest.raises(ConfigError, match='actor1: got 3, must be a dict'):
        parallel_transform(mine)


def test_a_value_out_of_range_is_told_in_todays_words():
    mine = older_form()
    mine.learner0.send_policy_freq = 0
    with pytest.raises(ConfigError, match=r'parallel\.publish_iters: got 0'):
        compile_config(mine)


def test_hosts_and_ports_are_filled_in_and_listed_for_the_coordinator():
    mine = older_form()
    mine.learner0.repeat_num, mine.actor1.host = 2, 'n7'
    filled = set_host_port(mine, 'c', 'l', 'a,b')
    assert filled['coordinator']['interaction']['host'] == 'c' and filled['coordinator']['interaction']['port'] > 0
    assert filled['learner0']['host'] == 'l' and len(filled['learner0']['port']) == 2
    assert filled['aggregator0']['master']['host'] == 'l'
    assert [filled[f'actor{i}']['host'] for i in range(3)] == ['a', 'n7', 'a']
    table = set_learner_interaction_for_coordinator(set_actor_interaction_for_coordinator(filled))
    rows = table['coordinator']['interaction']
    assert rows['actor']['actor1'] == ['actor1', 'n7', filled['actor1']['port']]
    assert rows['learner'] == {'learner0': ['learner0', 'l', filled['learner0']['port']]}
    assert parallel_transform(table) == parallel_transform(filled)


def test_the_default_sections_are_complete_and_pass():
    cfg = plain_copy(parallel_local_default_config)
    cfg['coordinator']['commander'].update(policy=older_form().coordinator.commander.policy)
    cfg['coordinator']['commander']['actor_cfg']['env_kwargs'].update(env_type='cartpole')
    resolved = compile_config(cfg)
    assert resolved.parallel.actor_num == 2 and resolved.evaluator.n_episode == 5
    assert coordinator_default_config.commander.actor_task_space == 2
