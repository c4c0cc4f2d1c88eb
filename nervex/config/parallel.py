"""The older form of a parallel config: sections for the coordinator, each learner and each actor, as one table."""

from typing import Any

from easydict import EasyDict

from nervex.config.tree import set_path
from nervex.utils.declare import Section, setting, settings

_COMMANDER = 'coordinator.commander'
_ENVS = f'{_COMMANDER}.actor_cfg.env_kwargs'
NOTHING, WORKED_OUT = None, ''
#: old path (``learner``: each of learner0, learner1, ...) -> (default, today's path). NOTHING: it has no meaning any
#: more, WORKED_OUT: utils.py says what comes of it.
OLDER_FORM: dict[str, tuple[Any, str | None]] = {
    'coordinator.actor_task_timeout': (30, NOTHING),  # Ray tells when an actor dies
    'coordinator.learner_task_timeout': (600, NOTHING),
    'coordinator.interaction.host': ('auto', NOTHING),  # Ray knows where everybody is
    'coordinator.interaction.port': ('auto', NOTHING),
    f'{_COMMANDER}.parallel_commander_type': ('naive', 'parallel.commander_type'),
    f'{_COMMANDER}.import_names': (None, WORKED_OUT),
    f'{_COMMANDER}.actor_task_space': (2, WORKED_OUT),
    f'{_COMMANDER}.learner_task_space': (1, WORKED_OUT),
    f'{_COMMANDER}.learner_cfg': ({}, 'learner'),
    f'{_COMMANDER}.actor_cfg.actor_type': ('zergling', NOTHING),  # there is one kind, which steps all its envs at once
    f'{_COMMANDER}.actor_cfg.import_names': (None, WORKED_OUT),
    f'{_COMMANDER}.actor_cfg.print_freq': (10, 'actor.collect_print_freq'),
    f'{_COMMANDER}.actor_cfg.traj_len': (None, 'actor.traj_len'),
    f'{_COMMANDER}.actor_cfg.compressor': ('lz4', NOTHING),  # blocks of arrays go through shared memory
    f'{_COMMANDER}.actor_cfg.policy_update_freq': (3, NOTHING),  # the newest weights ride on every call
    f'{_ENVS}.actor_env_num': (8, 'env.actor_env_num'),  # of one actor
    f'{_ENVS}.actor_episode_num': (None, NOTHING),  # a task has no end of its own
    f'{_ENVS}.evaluator_env_num': (5, 'env.evaluator_env_num'),
    f'{_ENVS}.evaluator_episode_num': (1, WORKED_OUT),  # of each env
    f'{_ENVS}.eval_stop_val': (None, 'evaluator.stop_val'),
    f'{_COMMANDER}.replay_buffer_cfg': ({}, 'replay_buffer'),
    f'{_COMMANDER}.policy': ({}, 'policy'),
    f'{_COMMANDER}.max_iterations': (None, 'commander.max_train_iter'),
    f'{_COMMANDER}.eval_interval': (None, 'evaluator.eval_freq'),
    'learner.import_names': (None, WORKED_OUT),
    'learner.comm_learner_type': ('ray', 'parallel.comm_learner_type'),
    'learner.host': ('auto', WORKED_OUT),
    'learner.port': ('auto', NOTHING),
    'learner.path_data': ('./data', NOTHING),  # data and weights go through memory
    'learner.path_policy': ('.', NOTHING),
    'learner.send_policy_freq': (1, 'parallel.publish_iters'),
    'learner.repeat_num': (1, WORKED_OUT),  # learners that the section stands for
    'learner.use_distributed': (False, NOTHING),  # several learners always average their gradients
    'actor.import_names': (None, WORKED_OUT),
    'actor.comm_actor_type': ('ray', 'parallel.comm_actor_type'),
    'actor.host': ('auto', WORKED_OUT),
    'actor.port': ('auto', NOTHING),
    'actor.path_data': ('./data', NOTHING),
    'actor.path_policy': ('.', NOTHING),
    'actor.queue_maxsize': (8, NOTHING),  # see parallel.outstanding and parallel.queue
}
#: names of roles that mean the ones of today
TODAY = {'flask_fs': 'ray', 'solo': 'naive'}


def _sections() -> dict[str, Section]:
    """What each section of the older form may hold; the values are checked as today's."""
    nested: dict[str, Any] = {}
    for path, (default, _) in OLDER_FORM.items():
        set_path(nested, path, setting(default, 'any'))
    for kind in ('learner', 'actor'):  # who is where, as set_learner_interaction_for_coordinator writes it
        set_path(nested, f'coordinator.interaction.{kind}', setting(needed=False))
    made = {kind: Section(f"the older form's {kind}") for kind in nested}
    for kind, section in made.items():
        section.declare(settings(**nested[kind]))
    envs: Any = made['coordinator'].at(_ENVS.partition('.')[2])
    envs.is_open = True
    return made


SECTIONS = _sections()
coordinator_default_config = EasyDict(SECTIONS['coordinator'].defaults())
learner_default_config = EasyDict(SECTIONS['learner'].defaults())
actor_default_config = EasyDict(SECTIONS['actor'].defaults())
parallel_local_default_config = EasyDict(
    dict(
        coordinator=coordinator_default_config,
        learner0=learner_default_config,
        actor0=actor_default_config,
        actor1=actor_default_config,
    )
)
