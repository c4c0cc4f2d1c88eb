"""``config_for``: a config for any policy on any env that suits it, chosen by the spaces of the env."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from easydict import EasyDict

from nervex.config import builtin_configs, compile_config, read_config
from nervex.config.compile import env_named, in_one_line, tell_foreign_stop
from nervex.config.derive import EXCLUSIVE
from nervex.config.model import conv_name, find_model, is_dense
from nervex.config.sections import SECTIONS, TOP_SETTINGS
from nervex.config.tree import get_path, has_path, pop_path, set_path
from nervex.envs import BaseEnv, GymEnv
from nervex.envs.env.base_env import get_env_cls
from nervex.envs.gym_env import known_spec, limits_itself
from nervex.loader.problems import Problems
from nervex.policy.suits import check_env, suits
from nervex.run.folder import config_beside, reaching_out
from nervex.utils import (
    ENV_REGISTRY,
    POLICY_REGISTRY,
    CheckpointError,
    ConfigError,
    NervexError,
    NothingThereError,
    UnknownNameError,
    unknown_name,
)
from nervex.utils.class_config import merge_config
from nervex.utils.declare import class_config
from nervex.utils.trust import UntrustedError
from nervex.worker.learner.checkpoints import load_checkpoint_file

STEP_LIMIT = 1000  # of an id whose registration has none
BUDGET, IMAGE_BUDGET = 200_000, 1_000_000  # env steps of a run
IMAGES_KEPT = 20_000  # of 96x96x3 bytes 550 MB
EPISODE_STEPS = 100  # taken for the length of one, where rounds of collecting are counted in episodes
EVALUATIONS = 20  # of a run
EXPLORATION = 0.125  # share of a run in which epsilon falls

_LINEAR = dict(type='linear', start=1.0, end=0.05)  # how epsilon falls
_REPLAY = dict(
    env=dict(actor_env_num=4),
    model=dict(hidden_dim_list=[128, 128]),
    learn=dict(train_step=4, batch_size=64, learning_rate=5e-4, init_data_count=1000, algo=dict(discount_factor=0.99)),
    replay_buffer=dict(agent=dict(meta_maxlen=100_000)),
    actor=dict(n_sample=4),
)
_CONTINUOUS = merge_config(
    _REPLAY,
    dict(learn=dict(batch_size=128, learning_rate=1e-3, algo=dict(target_theta=0.01)), collect=dict(random_steps=1000)),
)
_ON_POLICY = dict(
    env=dict(actor_env_num=8, manager=dict(norm_obs=True, norm_reward=True)),
    model=dict(hidden_dim_list=[64, 64], activation='tanh', head_layer_num=0, ortho_init=True),
    learn=dict(learning_rate=1e-3),
)
_PPO = merge_config(_ON_POLICY, dict(learn=dict(epochs=10, batch_size=64), actor=dict(n_sample=1024)))
_RECORDED = dict(  # episodes of -m offline
    env=dict(actor_env_num=8),
    learn=dict(train_step=10, batch_size=64, learning_rate=1e-3, init_data_count=0),
    actor=dict(n_sample=64),
    commander=dict(max_train_iter=10_000),
)
_TEAM = dict(
    env=dict(actor_env_num=8),
    learn=dict(learning_rate=1e-3),
    collect=dict(traj_len='inf'),
    actor=dict(n_sample=None, n_episode=8),
)
_SCALED = dict(env=dict(manager=dict(norm_obs=True)))
#: policy_type -> what learns on most envs, beside the defaults of the class, as overrides of ``config_for``, the later
#: over the earlier; a class has what its bases have, too
USUAL: dict[str, tuple[dict[str, Any], ...]] = {
    'dqn': (
        _REPLAY,
        dict(learn=dict(grad_clip_norm=10.0, algo=dict(target_update_freq=250))),
        dict(command=dict(eps=_LINEAR, eps_by='envstep')),
    ),
    'dqn_vanilla': (_REPLAY, dict(learn=dict(algo=dict(target_update_freq=250)))),
    'qrdqn': (dict(model=dict(num_quantiles=25)),),
    'rainbow_dqn': (dict(use_iqn=True, learn=dict(train_step=1)),),  # quantiles need no bounds of the returns
    'r2d2': (
        dict(model=dict(hidden_dim_list=[64], lstm_hidden_dim=64), replay_buffer=dict(agent=dict(meta_maxlen=5000))),
        dict(learn=dict(train_step=8, batch_size=16, init_data_count=32, algo=dict(nstep=3))),
    ),
    'cql': (_RECORDED,),
    'il': (_RECORDED, dict(model=dict(hidden_dim_list=[128, 128]))),
    'sqn': (_REPLAY, dict(learn=dict(learning_rate=1e-3, algo=dict(target_theta=0.02)))),
    'crossq': (dict(learn=dict(algo=dict(target_theta=None))),),
    'alphazero': (
        dict(env=dict(opponent='self', evaluator_opponent='random', env_manager_type='vector', actor_env_num=64)),
        dict(model=dict(hidden_dim_list=[128, 128]), learn=dict(train_step=4, batch_size=256)),
        dict(collect=dict(search=dict(simulations=24)), eval=dict(simulations=32)),
        dict(replay_buffer=dict(agent=dict(meta_maxlen=20_000)), actor=dict(n_sample=128)),
    ),
    'ddpg': (_CONTINUOUS,),
    'implicit_q': (_RECORDED, _SCALED),
    'td3_bc': (_RECORDED, _SCALED, dict(collect=dict(random_steps=0))),
    'sac': (_CONTINUOUS,),
    'a2c': (
        _ON_POLICY,
        dict(model=dict(share_encoder=False), learn=dict(batch_size=64, algo=dict(adv_norm=True))),
        dict(actor=dict(n_sample=64)),
    ),
    'ppo': (_PPO, dict(learn=dict(algo=dict(use_value_clip=False)))),
    'ppo_vanilla': (_PPO, dict(model=dict(share_encoder=False))),
    'ppo_recurrent': (
        dict(model=dict(hidden_dim_list=[64], lstm_hidden_dim=64), learn=dict(batch_size=8)),
        dict(collect=dict(traj_len=64), actor=dict(n_sample=64)),
    ),
    'ppg': (dict(replay_buffer=dict(buffer_name=['policy', 'value'], value=dict(type='replay', meta_maxlen=2048))),),
    'mappo': (_TEAM, dict(env=dict(manager=dict(norm_obs=False)), learn=dict(batch_size=16, epochs=4))),
    'coma': (_TEAM, dict(learn=dict(batch_size=8, epochs=2))),
    'qmix': (
        _TEAM,
        dict(learn=dict(train_step=8, batch_size=32, learning_rate=5e-4, algo=dict(target_update_freq=200))),
        dict(command=dict(eps=_LINEAR), replay_buffer=dict(agent=dict(meta_maxlen=1000))),
    ),
    'maddpg': (_TEAM, dict(learn=dict(train_step=8, batch_size=256))),
    'atoc': (_TEAM, dict(learn=dict(train_step=8, batch_size=256), collect=dict(random_steps=2000))),
    'impala': (
        dict(learn=dict(train_step=8, batch_size=16, algo=dict(adv_norm=False))),
        dict(replay_buffer=dict(agent=dict(meta_maxlen=64)), actor=dict(n_sample=8)),
    ),
}


def config_for(policy: str | type, env: str | type | Callable[[], Any], /, **overrides: Any) -> EasyDict:
    """
    Overview:
        What ``-m serial -c`` takes, where there is no config: settings that learn on most envs, by the policy and by
        what the env shows and takes. One env is made to be asked. A policy that does not suit it is a ConfigError that
        names others. The run ends at the return that the env's registration calls solved, if it names one.
    Arguments:
        - policy (:obj:`str | type`): a registered name, or the class
        - env (:obj:`str | type | Callable`): an id of Gymnasium, a registered ``env_type``, a class of nervex or of
          Gymnasium, or a function without arguments that makes an env
        - overrides: sections of a config, or of its policy: ``learn=dict(learning_rate=3e-4)``,
          ``commander=dict(max_env_step=50_000)``, ``use_cuda=True``
    """
    cls = policy if isinstance(policy, type) else POLICY_REGISTRY.get(policy)
    given = _by_section(overrides)
    section = merge_config(_env_section(env), given.get('env', {}))
    is_image, is_scaled, threshold = _look_at(section, cls, given.get('policy', {}))
    cfg: dict[str, Any] = dict(env=section, policy=dict(policy_type=policy), evaluator=dict(stop_val=threshold))
    usual = _usual(cls, is_image, is_scaled)
    net = find_model(class_config(cls, given.get('policy')), cls, None, Problems())
    taken = () if net is None else inspect.signature(net).parameters
    for name in set(get_path(usual, 'policy.model', {})) - set(taken):
        pop_path(usual, f'policy.model.{name}')
    cfg = merge_config(merge_config(cfg, usual), given)
    for one, other in (EXCLUSIVE[0], EXCLUSIVE[0][::-1]):
        if get_path(given, one) is not None and get_path(given, other) is None:
            set_path(cfg, other, None)
    with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):  # a wrong value is told with the config
        for path, value in _of_the_length(cls, cfg).items():
            if not has_path(given, path):
                set_path(cfg, path, value)
    return EasyDict(cfg)


def with_env(cfg: Mapping, env: Any) -> dict[str, Any]:
    """A config with another env in its place, as ``config_for`` takes it; counts, scaling and the like stay."""
    own = ('env_type', 'env_id', 'env_fn', 'package', 'make_kwargs', 'import_names')
    kept = {key: value for key, value in cfg['env'].items() if key not in own}
    return {**cfg, 'env': {**kept, **_env_section(env)}}


def config_from(policy: Any, env: Any, overrides: dict[str, Any]) -> EasyDict:
    """
    Overview:
        ``config_for`` of a policy and an env; or a config that was given in place of the policy, as a dict, a file or a
        built-in name, with the overrides, and with the env in the place of its own, unless that is None. All mistakes
        are raised as one ConfigError.
    """
    is_policy = isinstance(policy, type) or (isinstance(policy, str) and policy in POLICY_REGISTRY)
    if is_policy and env is not None:
        config = config_for(policy, env, **overrides)
        compile_config(config, needs_env=True)  # says what is wrong
        return config
    if is_policy:
        raise ConfigError([f"env: missing; a policy acts on one, as in Agent({policy!r}, 'CartPole-v1')"])
    if env is not None and isinstance(policy, str) and policy not in builtin_configs() and not os.path.exists(policy):
        raise UnknownNameError(unknown_name('policy', policy, POLICY_REGISTRY))
    if not isinstance(policy, (str, os.PathLike, Mapping)):
        raise ConfigError([f'policy: got {policy!r}, must be the name or the class of a policy, or a config'])
    given = policy if isinstance(policy, Mapping) else read_config(policy)
    sections = _by_section(overrides)
    config = EasyDict(merge_config(given if env is None else with_env(given, env), sections))
    if env is not None:
        tell_foreign_stop(config, env_named(given), [f'evaluator.{key}' for key in sections.get('evaluator', {})])
    compile_config(config, needs_env=True)
    return config


def seed_from(given: int | None, config: Mapping) -> int:
    """The seed that was given, or else that of the config, or 0."""
    seed = config.get('seed') or 0 if given is None else given
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or not 0 <= seed < 2**31:
        raise ValueError(f'seed: got {seed!r}, must be an int in [0, 2**31)')
    return int(seed)


def config_of(path: str, env: Any = None, trust: bool = False) -> dict[str, Any]:
    """
    Overview:
        The config of the run whose folder, or checkpoint, ``path`` is; of a checkpoint that lies elsewhere, the one in
        it. UntrustedError if it names code that this user has not signed, unless ``trust``.
    Arguments:
        - env (:obj:`Any`): in place of the env that it names, see ``with_env``
    """
    try:
        config, lone = config_beside(path, trust or env is not None), env is not None
    except NothingThereError:
        config, lone = load_checkpoint_file(path).get('config') or {}, True
        config = {key: value for key, value in config.items() if key not in ('exp_name', 'seed')}
    if not config.get('env'):
        raise CheckpointError(f'{path}: was saved without a config')
    config = config if env is None else with_env(config, env)
    if lone and not trust and (named := reaching_out(config)):
        text = f'its config names code to run, or folders ({", ".join(named)}), which nobody has signed'
        raise UntrustedError(f'{path}: {text}; trust=True takes it, for who trusts its maker')
    return config


def _by_section(overrides: dict[str, Any]) -> dict[str, Any]:
    """The overrides, with those of the policy in its section."""
    top = {key: value for key, value in overrides.items() if key in SECTIONS or key in TOP_SETTINGS}
    inner = {key: value for key, value in overrides.items() if key not in top}
    for section in SECTIONS:
        if not isinstance(top.get(section, {}), dict):
            raise ConfigError([f'{section}: got {top[section]!r}, must be a dict of settings'])
    return merge_config(top, dict(policy=inner)) if inner else top


def _env_section(env: Any) -> dict[str, Any]:
    """How a config names this env."""
    if isinstance(env, str):
        made = ENV_REGISTRY.get(env) if ':' in env and env in ENV_REGISTRY else None  # module:name
        if made is not None and (isinstance(made, type) or not _needed(made)):
            return _env_section(made)
        return dict(env_type=env) if env in ENV_REGISTRY else dict(env_type='gym', env_id=env)
    if isinstance(env, type) and issubclass(env, BaseEnv):
        return dict(env_type=env)
    if not callable(env):
        raise ConfigError(
            [f'env: got {env!r}, must be an id, a class, or a function that makes an env: a run makes several']
        )
    if needed := _needed(env):
        name = getattr(env, '__name__', env)
        text = f'{name} needs the argument {needed[0]}; give a function that needs none, as lambda: ...'
        raise ConfigError([f'env: {text}'])
    return dict(env_type='gym', env_fn=env)


def _needed(env: Callable) -> list[str]:
    """The arguments without which it cannot be called."""
    parameters = inspect.signature(env).parameters.values()
    return [p.name for p in parameters if p.default is p.empty and p.kind < p.VAR_POSITIONAL]


def _look_at(section: dict[str, Any], policy: type, given: dict[str, Any]) -> tuple[bool, bool, float | None]:
    """
    Overview:
        Make one env and see whether the policy suits it. Of a Gymnasium env the section gets what its spaces ask for:
        dicts are joined to one vector, actions are scaled to their bounds, an id without a time limit gets one; and
        of an env of which a process can have one that each has its own.
    Arguments:
        - given (:obj:`dict`): what overrides say of the policy
    Returns:
        - is_image, is_scaled, threshold: whether observations are images, and whether all their numbers lie in [-1, 1];
          the return that the env's registration calls solved
    """
    added, threshold = {}, None
    try:
        make = get_env_cls(section)
        limited = dict(max_episode_steps=STEP_LIMIT) if make is GymEnv else {}  # what is only looked at misses none
        with contextlib.closing(make({**limited, **section})) as env:
            info = env.info()
            is_scaled = _within_one(info.obs_space.shape, info.obs_space.value)
            if isinstance(env, GymEnv):
                added = {key: value for key, value in _asked_for(env, info).items() if key not in section}
                threshold = None if section.get('make_kwargs') else getattr(env.spec, 'reward_threshold', None)
        if added:
            section.update(added)
            with contextlib.closing(make(section)) as env:
                info = env.info()
    except NervexError:
        raise
    except (Exception, SystemExit) as error:  # an env may raise anything
        raise ConfigError([f'env: none can be made: {in_one_line(error)}']) from error
    check_env(policy, info)
    if getattr(make, 'one_a_process', False):
        section.setdefault('env_manager_type', 'subprocess')
    shape = info.obs_space.shape
    is_image = isinstance(shape, (tuple, list)) and len(shape) == 3
    if is_image and 'model' not in given and not _sees(policy):
        known: list[Any] = [POLICY_REGISTRY.get(name) for name in POLICY_REGISTRY.query()]
        suited = ', '.join(other.config['policy_type'] for other in known if suits(other, info) and _sees(other))
        text = f'has no net for images, {tuple(shape)}; take one of {suited}, or name a net in policy.model'
        raise ConfigError([f'policy.policy_type: {policy.__name__} {text}'])
    return is_image, is_scaled, threshold


def _sees(policy: type) -> bool:
    """Whether the policy's own net, or one that takes its place, is for images; of a user's own net nobody knows."""
    net = find_model(class_config(policy, None), policy, None, Problems())
    return conv_name(net) is not None or not is_dense(net)


def _asked_for(env: GymEnv, info: Any) -> dict[str, Any]:
    """Settings of a Gymnasium env that its spaces ask for."""
    shape, act = info.obs_space.shape, info.act_space.value
    added: dict[str, Any] = {}
    if isinstance(shape, dict) and not (len(shape) == 2 and 'action_mask' in shape):
        added['flatten_obs'] = True
    if act.get('kind') == 'continuous' and all(np.isfinite(act[end]).all() for end in ('min', 'max')):
        added['use_act_scale'] = True
    if env.spec is not None and not known_spec(env.spec.id).max_episode_steps and not limits_itself(env.env, []):
        added['max_episode_steps'] = STEP_LIMIT
    return added


def _within_one(shape: Any, value: Any) -> bool:
    if isinstance(shape, dict):
        return all(_within_one(part, value[key]) for key, part in shape.items())
    bounds = [(value or {}).get('min', -np.inf), (value or {}).get('max', np.inf)]
    return all(bool((np.abs(np.asarray(bound, np.float64)) <= 1).all()) for bound in bounds)


def _usual(policy: type, is_image: bool, is_scaled: bool) -> dict[str, Any]:
    """The sections that the class and its bases usually have, as the observations ask for."""
    overrides = dict(env=dict(evaluator_env_num=5), evaluator=dict(n_episode=5), commander=dict(max_env_step=BUDGET))
    for base in reversed(policy.__mro__):
        for more in USUAL.get(vars(base).get('config', {}).get('policy_type'), ()):
            overrides = merge_config(overrides, more)
    values = _by_section(overrides)
    if is_scaled or is_image:
        pop_path(values, 'env.manager.norm_obs')
    if is_image:
        for name in ('activation', 'head_layer_num', 'ortho_init', 'share_encoder'):
            pop_path(values, f'policy.model.{name}')
        small = dict(env=dict(evaluator_env_num=2), evaluator=dict(n_episode=2))
        large = dict(policy=dict(model=dict(hidden_dim_list=[256])), commander=dict(max_env_step=IMAGE_BUDGET))
        values = merge_config(values, {**small, **large})
        if (kept := get_path(values, 'replay_buffer.agent.meta_maxlen')) is not None:
            set_path(values, 'replay_buffer.agent.meta_maxlen', min(kept, IMAGES_KEPT))
    return values


def _of_the_length(policy: type, cfg: dict[str, Any]) -> dict[str, Any]:
    """Path -> value of what follows from the length of the run: how often it is evaluated, how long epsilon falls."""
    merged = class_config(policy, cfg['policy'])
    learn, collect, rows = merged['learn'], merged['collect'], get_path(cfg, 'actor.n_sample')
    values: dict[str, Any] = {}
    steps, updates = get_path(cfg, 'commander.max_env_step'), get_path(cfg, 'commander.max_train_iter')
    a_round, size = learn['train_step'], learn.get('batch_size')
    if learn.get('epochs'):
        a_round = learn['epochs'] * -(-(rows or 1) // (min(size.values()) if isinstance(size, dict) else size))
    round_steps = (get_path(cfg, 'actor.n_episode') or 0) * EPISODE_STEPS
    if rows:
        round_steps = rows * collect.get('unroll_len', 1)
    if round_steps and steps and not updates:
        updates = steps * a_round // round_steps
    if updates:
        values['evaluator.eval_freq'] = max(updates // EVALUATIONS, 1)
    if merged['command'].get('eps') is not None and steps:
        counted = steps if merged['command'].get('eps_by') == 'envstep' else updates or steps
        values['policy.command.eps.decay'] = max(int(counted * EXPLORATION), 1000)
    return values
