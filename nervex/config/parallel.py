"""The older form of a parallel config: one section for the coordinator, one for each learner and each actor."""

from easydict import EasyDict

_ACTOR_CFG = dict(
    actor_type='zergling',  # (str) kind of actor; there is one, which steps all its envs at once
    import_names=None,  # (list of str | None) modules that register it
    print_freq=10,  # -> actor.collect_print_freq
    traj_len=None,  # -> actor.traj_len
    compressor='lz4',  # no meaning: blocks of arrays go through shared memory
    policy_update_freq=3,  # no meaning: the newest weights ride on every call
    env_kwargs=dict(  # -> env, apart from these
        actor_env_num=8,  # -> parallel.envs_per_actor
        actor_episode_num=None,  # no meaning: a task has no end of its own
        evaluator_env_num=5,  # -> env.evaluator_env_num
        evaluator_episode_num=1,  # -> evaluator.n_episode, for each of these envs
        eval_stop_val=None,  # -> evaluator.stop_val
    ),
)

coordinator_default_config = EasyDict(
    dict(
        actor_task_timeout=30,  # no meaning: Ray tells when an actor dies
        learner_task_timeout=600,  # no meaning, likewise
        interaction=dict(host='auto', port='auto'),  # no meaning: Ray knows where everybody is
        commander=dict(
            parallel_commander_type='naive',  # -> parallel.commander_type
            import_names=None,  # -> parallel.import_names
            actor_task_space=2,  # -> parallel.actor_num, where no section actor0, ... says how many
            learner_task_space=1,  # -> parallel.learner_num, likewise
            learner_cfg={},  # -> learner
            actor_cfg=_ACTOR_CFG,
            replay_buffer_cfg={},  # -> replay_buffer
            policy={},  # -> policy
            max_iterations=None,  # -> commander.max_train_iter
            eval_interval=None,  # -> evaluator.eval_freq
        ),
    )
)

learner_default_config = EasyDict(
    dict(
        import_names=None,  # -> parallel.import_names
        comm_learner_type='ray',  # -> parallel.comm_learner_type; 'flask_fs' is today's 'ray'
        host='auto',  # -> parallel.resources.learner.hosts, where it names a machine
        port='auto',  # no meaning
        path_data='./data',  # no meaning: data goes through memory
        path_policy='.',  # no meaning: so do weights
        send_policy_freq=1,  # -> parallel.publish_iters
        repeat_num=1,  # learners that this section stands for -> parallel.learner_num
        use_distributed=False,  # no meaning: several learners always average their gradients
    )
)

actor_default_config = EasyDict(
    dict(
        import_names=None,  # -> parallel.import_names
        comm_actor_type='ray',  # -> parallel.comm_actor_type; 'flask_fs' is today's 'ray'
        host='auto',  # -> parallel.resources.actor.hosts, where it names a machine
        port='auto',  # no meaning
        path_data='./data',  # no meaning
        path_policy='.',  # no meaning
        queue_maxsize=8,  # no meaning: see parallel.outstanding and parallel.queue
    )
)

parallel_local_default_config = EasyDict(
    dict(
        coordinator=coordinator_default_config,
        learner0=learner_default_config,
        actor0=actor_default_config,
        actor1=actor_default_config,
    )
)
