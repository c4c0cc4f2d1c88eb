"""Older spellings of settings, all of them in one table."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from nervex.config.tree import MISSING, get_path, has_path, plain_copy, pop_path, set_path
from nervex.loader.errors import shown
from nervex.loader.problems import Problems

logger = logging.getLogger(__name__)

#: How a row of ``ALIASES`` begins whose setting means nothing any more: it is left out, and the log says why.
NOTHING = 'nothing: '


def _switch(on: dict[str, Any], off: dict[str, Any]) -> Callable[[Any], dict[str, Any] | None]:
    return lambda value: (on if value else off) if isinstance(value, bool) else None


#: Where whole sections were elsewhere, and the names of env, manager and policy. Applied first, whatever is declared.
STRUCTURE: dict[str, str | Callable[[Any], dict[str, Any] | None]] = {
    'load_path': 'learner.load_path',
    'load_checkpoint': _switch(on={}, off={'learner.load_path': MISSING}),
    'max_episode': 'commander.max_episode',
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
    'policy.model.value_layers': 'policy.model.hidden_dim_list',
    'policy.model.actor_layers': 'policy.model.actor_hidden_dim_list',
    'policy.model.critic_layers': 'policy.model.critic_hidden_dim_list',
    'policy.model.action_shape': 'policy.model.action_dim',
    'policy.model.act_shape': 'policy.model.action_dim',
    'policy.model.encoder_hidden_size_list': 'policy.model.hidden_dim_list',
    'policy.model.hidden_size_list': 'policy.model.hidden_dim_list',
    'policy.model.agent_obs_shape': 'policy.model.obs_dim',
    'policy.model.global_obs_shape': 'policy.model.global_obs_dim',
    'policy.model.alone_obs_shape': 'policy.model.alone_obs_dim',
    'evaluator.stop_value': 'evaluator.stop_val',
    'env.engine': 'env.vector_backend',
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


def rename(
    given: dict[str, Any],
    table: Mapping[str, Any],
    may_move: Callable[[str, str | None], bool],
    problems: Problems,
    strong: set[str],
) -> None:
    """
    Overview:
        Replace what stands at the old paths of a table, in place.
    Arguments:
        - may_move (:obj:`Callable`): ``may_move(old, new)`` says whether a row holds here; new is None if no path is
        - strong (:obj:`set[str]`): paths that overrides gave: of two spellings such a one wins
    """
    for old, new in table.items():
        section = get_path(given, old.partition('.*')[0]) if '*' in old else {'*': {}}
        names = [name for name, value in section.items() if isinstance(value, Mapping)] if section else []
        for name in names:
            here, goes = old.replace('*', name), isinstance(new, str) and not new.startswith(NOTHING)
            there = new.replace('*', name) if goes else None
            if not has_path(given, here) or not may_move(here, there):
                continue
            meant = {} if isinstance(new, str) else new(get_path(given, here))
            if meant is None:
                continue
            if isinstance(new, str) and not goes:
                logger.warning('%s means nothing any more: %s', here, new.removeprefix(NOTHING))
            value = pop_path(given, here)
            for path, part in {there: value}.items() if there else meant.items():
                _put(given, here, path, part, problems, strong)


def _put(given: dict[str, Any], old: str, new: str, value: Any, problems: Problems, strong: set[str]) -> None:
    """Set what ``old`` stood for, MISSING takes it away; two different values for one setting are a problem."""
    there = get_path(given, new, MISSING)
    if value is MISSING:
        pop_path(given, new)
    elif isinstance(value, Mapping) and isinstance(there, Mapping):
        for key in value:
            _put(given, f'{old}.{key}', f'{new}.{key}', value[key], problems, strong)
    elif there is not MISSING and there != value and (old in strong) == (new in strong):
        problems.add(
            old, f'got {shown(value)}, but {new} is {shown(there)}; both are names of one setting, so keep only {new}'
        )
    elif there is MISSING or old in strong:
        if not set_path(given, new, plain_copy(value)):
            problems.add(old, f'is now {new}, but the section there is not a dict')
        strong |= {new + path[len(old) :] for path in strong if path == old or path.startswith(f'{old}.')}
