"""Older spellings of settings, all of them in one table."""

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any

from nervex.config.tree import MISSING, get_path, has_path, plain_copy, pop_path, set_path
from nervex.loader.exception import shown
from nervex.loader.problems import Problems
from nervex.utils.declare import declared_by
from nervex.utils.import_helper import load_attribute

logger = logging.getLogger(__name__)

#: How a row of ``ALIASES`` begins whose setting means nothing any more: it is left out, and the log says why.
NOTHING = 'nothing: '

#: Where whole sections were elsewhere, and the names of env, manager and policy. Applied first, whatever is declared.
STRUCTURE: dict[str, str] = {
    'collector': 'actor',
    'policy.collect.collector': 'actor',
    'policy.eval.evaluator': 'evaluator',
    'policy.learn.learner': 'learner',
    'policy.other.replay_buffer': 'replay_buffer',
    'policy.other.eps': 'policy.command.eps',
    'policy.type': 'policy.policy_type',
    'policy.other.commander': 'commander',
    'env.type': 'env.env_type',
    'env.manager.type': 'env.env_manager_type',
    'env.manager.env_manager_type': 'env.env_manager_type',
    'env_manager.type': 'env.env_manager_type',
    'env_manager': 'env.manager',
}

#: Older names of policies -> what the section says today.
POLICY_TYPES: dict[str, dict[str, Any]] = {
    'rainbow': dict(policy_type='rainbow_dqn'),
    'c51': dict(policy_type='rainbow_dqn'),
    'iqn': dict(policy_type='rainbow_dqn', use_iqn=True),
}


def _switch(on: dict[str, Any], off: dict[str, Any]) -> Callable[[Any], dict[str, Any] | None]:
    return lambda value: (on if value else off) if isinstance(value, bool) else None


_TARGET_NOISE, _OLD_NOISE = 'policy.learn.algo.target_noise_sigma', 'policy.learn.algo.noise_sigma'
_HER = 'policy.collect.algo'
#: old path -> today's path; ``*`` is one name. Applied where a class declares today's name, and not the old one itself.
#: A row may also begin with NOTHING, or be a function: value -> {today's path: value, or MISSING to leave it out} or
#: None: the value says nothing.
ALIASES: dict[str, str | Callable[[Any], dict[str, Any] | None]] = {
    'env.collector_env_num': 'env.actor_env_num',
    'env.stop_value': 'evaluator.stop_val',
    'env.stop_val': 'evaluator.stop_val',
    'env.manager.timeout': 'env.manager.step_wait_timeout',
    'env.n_evaluator_episode': 'evaluator.n_episode',
    'policy.cuda': 'policy.use_cuda',
    'policy.priority': 'policy.use_priority',
    'policy.multi_gpu': 'policy.use_distributed',
    'policy.learn.multi_gpu': 'policy.use_distributed',
    'learner.use_cuda': 'policy.use_cuda',
    'learner.use_distributed': 'policy.use_distributed',
    'policy.learn.train_iteration': 'policy.learn.train_step',
    'policy.learn.update_per_collect': 'policy.learn.train_step',
    'policy.learn.weight_decay_rate': 'policy.learn.weight_decay',
    'policy.learn.epoch_per_collect': 'policy.learn.epochs',
    'policy.random_collect_size': 'policy.learn.init_data_count',
    'policy.nstep': 'policy.learn.algo.nstep',
    'policy.learn.nstep': 'policy.learn.algo.nstep',
    'policy.collect.nstep': 'policy.collect.algo.nstep',
    'policy.discount_factor': 'policy.learn.algo.discount_factor',
    'policy.learn.discount_factor': 'policy.learn.algo.discount_factor',
    'policy.collect.discount_factor': 'policy.learn.algo.discount_factor',
    'policy.learn.target_update_freq': 'policy.learn.algo.target_update_freq',
    'policy.learn.value_weight': 'policy.learn.algo.value_weight',
    'policy.learn.entropy_weight': 'policy.learn.algo.entropy_weight',
    'policy.learn.clip_ratio': 'policy.learn.algo.clip_ratio',
    'policy.collect.gae_lambda': 'policy.learn.algo.gae_lambda',
    'policy.collect.algo.gae_lambda': 'policy.learn.algo.gae_lambda',
    'policy.collect.algo.discount_factor': 'policy.learn.algo.discount_factor',
    'policy.collect.n_sample': 'actor.n_sample',
    'policy.collect.n_episode': 'actor.n_episode',
    'policy.collect.collector_env_num': 'policy.collect.env_num',
    'policy.collect.actor_env_num': 'policy.collect.env_num',
    'policy.eval.evaluator_env_num': 'policy.eval.env_num',
    'policy.model.obs_shape': 'policy.model.obs_dim',
    'policy.model.action_shape': 'policy.model.action_dim',
    'policy.model.act_shape': 'policy.model.action_dim',
    'policy.model.encoder_hidden_size_list': 'policy.model.hidden_dim_list',
    'policy.model.hidden_size_list': 'policy.model.hidden_dim_list',
    'policy.model.agent_obs_shape': 'policy.model.obs_dim',
    'policy.model.global_obs_shape': 'policy.model.global_obs_dim',
    'policy.model.alone_obs_shape': 'policy.model.alone_obs_dim',
    'evaluator.stop_value': 'evaluator.stop_val',
    'env.norm_obs.use_norm': 'env.manager.norm_obs',
    'env.norm_reward.use_norm': 'env.manager.norm_reward',
    'policy.learn.algo.use_adv_norm': 'policy.learn.algo.adv_norm',
    'policy.learn.algo.lambda_': 'policy.learn.algo.gae_lambda',
    'policy.collect.algo.lambda_': 'policy.learn.algo.gae_lambda',
    'policy.learn.algo.use_value_rescale': 'policy.learn.algo.value_rescale',
    'policy.collect.algo.burnin_step': 'policy.learn.algo.burnin_step',
    'policy.learn.algo.use_iqn': 'policy.use_iqn',
    'policy.learn.algo.tau_num': 'policy.learn.algo.tau',
    'policy.learn.algo.tau_prim_num': 'policy.learn.algo.tau_prim',
    'policy.learn.algo.aux_freq': 'policy.learn.aux_freq',
    'policy.learn.algo.epochs_aux': 'policy.learn.epochs_aux',
    'policy.learn.algo.use_twin_critic': 'policy.model.use_twin_critic',
    'policy.learn.algo.use_twin_q': 'policy.model.use_twin_q',
    'policy.learn.algo.is_auto_alpha': 'policy.learn.algo.auto_alpha',
    'policy.learn.is_auto_alpha': 'policy.learn.algo.auto_alpha',
    'policy.learn.learning_rate_q': 'policy.learn.learning_rate_critic',
    'policy.learn.learning_rate_policy': 'policy.learn.learning_rate_actor',
    'policy.learn.learning_rate_value': f'{NOTHING}there is no value network beside the critics',
    'policy.learn.algo.reparameterization': f'{NOTHING}gradients always go through the sampled action',
    'policy.learn.algo.policy_mean_reg_weight': f'{NOTHING}the entropy alone holds the policy',
    'policy.learn.algo.policy_std_reg_weight': f'{NOTHING}the entropy alone holds the policy',
    'policy.learn.algo.use_noise': _switch(on={}, off={_TARGET_NOISE: 0.0, _OLD_NOISE: MISSING}),
    _OLD_NOISE: _TARGET_NOISE,
    'policy.learn.algo.noise_range.max': 'policy.learn.algo.target_noise_clip',
    'policy.learn.algo.noise_range.min': f'{NOTHING}noise is cut on both sides alike',
    'policy.collect.algo.noise_sigma': 'policy.collect.noise_sigma',
    'policy.model.fixed_sigma_value': lambda sigma: {'policy.model.sigma': sigma, 'policy.model.sigma_type': 'fixed'},
    f'{_HER}.use_her': _switch(
        on={'actor.transform.her': {}}, off={f'{_HER}.her_strategy': MISSING, f'{_HER}.her_replay_k': MISSING}
    ),
    f'{_HER}.her_strategy': lambda strategy: {'actor.transform.her.strategy': strategy},
    f'{_HER}.her_replay_k': lambda k: {'actor.transform.her.k': k},
}
for _role in ('learner', 'actor'):
    for _path in ('path_data', 'path_policy'):
        ALIASES[f'{_role}.{_path}'] = f'{NOTHING}data and weights go through memory'
for _old, _new in (
    ('maxlen', 'meta_maxlen'),
    ('replay_buffer_size', 'meta_maxlen'),
    ('buffer_length', 'meta_maxlen'),
    ('buffer_size', 'meta_maxlen'),
    ('max_use', 'max_reuse'),
    ('sample_ratio', 'min_sample_ratio'),
    ('thruput_controller.sample_min_limit_ratio', 'min_sample_ratio'),
    (
        'thruput_controller',
        f'{NOTHING}train_step, and parallel.ratio, say how often rows are sampled',
    ),
):
    for _where in ('replay_buffer', 'replay_buffer.*'):
        ALIASES[f'{_where}.{_old}'] = _new if _new.startswith(NOTHING) else f'{_where}.{_new}'

#: Settings of which at most one may be given.
EXCLUSIVE: tuple[tuple[str, str], ...] = (('actor.n_sample', 'actor.n_episode'),)


def rename(
    given: dict[str, Any],
    table: Mapping[str, Any],
    may_move: Callable[[str, str | None], bool],
    problems: Problems,
) -> None:
    """Replace what stands at the old paths of a table, in place, where ``may_move(old, new)``; new: None if no path."""
    for old, new in table.items():
        section = get_path(given, old.partition('.*')[0]) if '*' in old else None
        known = section.items() if isinstance(section, Mapping) else [('*', {})]
        names = [name for name, value in known if isinstance(value, Mapping)]
        for name in names:
            here = old.replace('*', name)
            there = None if callable(new) or new.startswith(NOTHING) else new.replace('*', name)
            if not has_path(given, here) or not may_move(here, there):
                continue
            if there is not None:
                move(given, here, there, problems)
            elif callable(new):
                if (meant := new(get_path(given, here))) is not None:
                    pop_path(given, here)
                    for path, value in meant.items():
                        _put(given, here, path, value, problems)
            else:
                pop_path(given, here)
                logger.warning('%s means nothing any more: %s', here, new.removeprefix(NOTHING))


def move(given: dict[str, Any], old: str, new: str, problems: Problems) -> None:
    """Move the value at ``old`` to ``new``; dicts merge, and two different values for one setting are a problem."""
    value = get_path(given, old, MISSING)
    if isinstance(value, Mapping) and isinstance(get_path(given, new), Mapping):
        for key in list(value):
            move(given, f'{old}.{key}', f'{new}.{key}', problems)
        if not get_path(given, old, MISSING):
            pop_path(given, old)
    elif value is not MISSING:
        _put(given, old, new, pop_path(given, old), problems)


def _put(given: dict[str, Any], old: str, new: str, value: Any, problems: Problems) -> None:
    """Set what ``old`` stood for; MISSING takes it away."""
    there = get_path(given, new, MISSING)
    if value is MISSING:
        pop_path(given, new)
    elif there is not MISSING and there != value and not (value == {} and isinstance(there, Mapping)):
        problems.add(
            old, f'got {shown(value)}, but {new} is {shown(there)}; both are names of one setting, so keep only {new}'
        )
    elif there is MISSING and not set_path(given, new, plain_copy(value)):
        problems.add(old, f'is now {new}, but the section there is not a dict')


@functools.cache
def ties() -> dict[str, str]:
    """Path -> the path of the setting that must agree with it, as the framework's own classes declare them."""
    classes = {'policy': 'nervex.policy.base_policy:Policy', 'actor': 'nervex.worker.actor:BaseSerialActor'}
    return {
        f'{section}.{path}': entry.same_as
        for section, where in classes.items()
        for path, entry in declared_by(load_attribute(where), own_only=False).leaves(hidden=True)
        if entry.same_as
    }


def same_setting(path: str) -> set[str]:
    """All other paths that mean, or must agree with, the setting at ``path``."""
    today = _today(path)
    source = ties().get(today, today)
    found = {today, source, *(path for path, other in ties().items() if other == source)}
    waiting = list(found)
    while waiting:
        here = waiting.pop()
        for old, new in _TABLE.items():
            spelling = _renamed(here, new, old)
            if spelling is not None and spelling not in found:
                found.add(spelling)
                waiting.append(spelling)
    return found - {path}


_TABLE = {
    old: new for old, new in {**STRUCTURE, **ALIASES}.items() if isinstance(new, str) and not new.startswith(NOTHING)
}


def _today(path: str) -> str:
    """Today's spelling of a path, also where one of its parents moved."""
    for old in sorted(_TABLE, key=len, reverse=True):
        new = _renamed(path, old, _TABLE[old])
        if new is not None:
            return _today(new)
    return path


def _renamed(path: str, old: str, new: str) -> str | None:
    """``path`` with its first parts ``old`` (``*``: any one) replaced by ``new``; None if it starts otherwise."""
    parts, wanted = path.split('.'), old.split('.')
    if len(parts) < len(wanted) or any(want not in ('*', part) for want, part in zip(wanted, parts)):
        return None
    star = next((part for want, part in zip(wanted, parts) if want == '*'), '')
    return '.'.join([star if part == '*' else part for part in new.split('.')] + parts[len(wanted) :])
