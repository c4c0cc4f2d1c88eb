"""The only wiring code: a resolved config -> envs, policy and workers that know each other."""

from __future__ import annotations

import contextlib
import copy
import inspect
import logging
from inspect import Parameter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from easydict import EasyDict

from nervex.config.model import find_model
from nervex.config.save import plain_config
from nervex.data import BufferManager
from nervex.envs import Duels, get_vec_env_setting
from nervex.envs.common import team_problems
from nervex.envs.two_sided import ITSELF
from nervex.envs.wrappers.video import FilmedEnvs
from nervex.loader.problems import Problems
from nervex.policy import Policy
from nervex.policy.suits import TEAMS, action_kind, check_env
from nervex.run.folder import checkpoint_file
from nervex.run.launch import EnvSetting, Launch, Passed, prepare_launch
from nervex.run.serial_run import SerialRun
from nervex.utils import (
    ACTOR_REGISTRY,
    COMMANDER_REGISTRY,
    LEARNER_REGISTRY,
    POLICY_REGISTRY,
    CheckpointError,
    ConfigError,
)
from nervex.utils.default_helper import set_pkg_seed
from nervex.utils.import_helper import import_modules
from nervex.utils.system_helper import keep_freed_memory
from nervex.worker.actor import BaseSerialEvaluator
from nervex.worker.actor.env_manager import create_env_manager
from nervex.worker.learner.checkpoints import load_checkpoint_file

if TYPE_CHECKING:
    from nervex.run.opponents import Opponents, SelfPlay

logger = logging.getLogger(__name__)
EVALUATION_SEED_OFFSET = 100_000  # evaluation episodes are never among the first training episodes


# ---- a serial run ----
def build_serial(
    cfg: str | dict | None,
    seed: int | None,
    env_setting: EnvSetting | None = None,
    policy: type[Policy] | None = None,
    model: Any = None,
    overrides: tuple[str, ...] = (),
    resume: str | None = None,
) -> SerialRun:
    """``start_serial`` of what ``prepare_launch`` makes of the same arguments."""
    return start_serial(prepare_launch(cfg, seed, Passed(env_setting, policy, model), overrides, resume))


def start_serial(launch: Launch, kind: type[SerialRun] = SerialRun, state: dict[str, Any] | None = None) -> SerialRun:
    """
    Overview:
        Build the run, and put it where the earlier one was that it goes on from: at ``state``, or (None) at its newest.
    """
    state = launch.newest_state() if state is None else state
    if state is not None and state.get('mode') == 'parallel':
        raise CheckpointError(
            "this run was stopped in parallel mode, where actors keep no state; resume it with '-m parallel', or start "
            'a serial run from its checkpoint with --load'
        )
    if not kind.collects:
        refuse_beside(launch.cfg, f'nothing is collected in {kind.mode} mode')
    if launch.cfg.commander.selfplay is not None or launch.passed.rivals is not None:
        refuse_beside(launch.cfg, 'opponents that learn change while it would be collected')
    with contextlib.ExitStack() as stack:
        folder = launch.open_folder(stack, {} if state is None else state['log_sizes'])
        run = kind(launch, folder, stack, **_build_workers(launch, folder.path, stack))
        if launch.saved is not None:
            run.learner.ckpt_path = launch.saved.ckpt_path
        launch.describe(folder, run.learner.ckpt_path, run.mode)
        if state is not None:
            run.resume(state, new_rates=bool(launch.saved and launch.saved.diverged))
        run.stack = stack.pop_all()  # nothing has failed: the run closes all of it
    return run


def _build_workers(launch: Launch, exp_path: str, stack: contextlib.ExitStack) -> dict[str, Any]:
    """Envs, policy and workers that know each other; ``stack`` closes them."""

    def closed_later(part: Any) -> Any:
        stack.callback(part.close)
        return part

    cfg, seed, passed = launch.cfg, launch.seed, launch.passed
    set_pkg_seed(seed, use_cuda=cfg.policy.use_cuda)
    selfplay = build_selfplay(launch, exp_path, stack)
    actor_env, evaluator_env = build_env_managers(cfg, passed.env_setting, seed, stack, rivals=selfplay)
    policy = build_policy(cfg, policy_class(cfg, passed.policy), passed.model, actor_env.env_info())
    policy.check_resume()
    _set_threads(cfg.policy.torch_threads, policy._model, stack)
    learner = closed_later(LEARNER_REGISTRY.get(cfg.learner.learner_type)(cfg.learner, exp_name=exp_path))
    actor = closed_later(ACTOR_REGISTRY.get(cfg.actor.actor_type)(cfg.actor, exp_path, learner.tb_logger, seed))
    evaluator = closed_later(BaseSerialEvaluator(cfg.evaluator, exp_path, seed=seed + EVALUATION_SEED_OFFSET))
    buffer = build_buffer(cfg, exp_path, seed, actor_env.env_info(), stack)
    learner.policy, learner.run_config = policy.learn_mode, plain_config({**cfg, 'policy': policy._cfg})
    if actor_env.state_dict() is None:
        logger.warning(
            'the collecting envs cannot be saved in the middle of an episode: a resumed run begins their episodes '
            'anew, and goes on otherwise than without the stop'
        )
    if actor_env.normalizer is not None:
        learner.attach('normalizer', actor_env.normalizer)
    actor.env, actor.policy = actor_env, policy.collect_mode
    if cfg.actor.beside_learning:
        actor = closed_later(_beside(actor, learner, policy, launch))
    evaluator.env, evaluator.policy = evaluator_env, policy.eval_mode
    commander = COMMANDER_REGISTRY.get(cfg.commander.commander_type)(
        cfg.commander, learner, actor, evaluator, buffer, policy.command_mode
    )
    commander.selfplay = selfplay
    return dict(policy=policy, learner=learner, actor=actor, evaluator=evaluator, buffer=buffer, commander=commander)


def _beside(actor: Any, learner: Any, policy: Policy, launch: Launch) -> Any:
    """The actor, beside whose collecting the learner learns."""
    from nervex.run.beside import BesideActor, SettledState

    model = copy.deepcopy(launch.passed.model)  # a module would be shared
    acting = build_policy(launch.cfg, type(policy), model, actor.env.env_info(), ('collect',))
    made = BesideActor(actor, policy, acting)
    learner.attached = {name: SettledState(part, made) for name, part in learner.attached.items()}
    return made


def refuse_beside(cfg: EasyDict, why: str) -> None:
    """A ConfigError if ``actor.beside_learning`` is on."""
    if cfg.actor.beside_learning:
        raise ConfigError([f'actor.beside_learning: got True, but {why}; leave it False'])


def build_selfplay(launch: Launch, exp_path: str, stack: contextlib.ExitStack) -> SelfPlay | None:
    """The snapshots of the learner that it plays against, where the config says so; ``stack`` closes their logs."""
    kind = launch.cfg.commander.selfplay
    if kind is None or launch.passed.rivals is not None:
        return launch.passed.rivals
    from nervex.run.opponents import SelfPlay

    made = SelfPlay(launch, exp_path, check_opponents(launch, 'commander.selfplay', kind))
    stack.callback(made.close)
    return made


def check_opponents(launch: Launch, path: str, value: str) -> Any:
    """The game of a run whose opponents learn, by the setting ``path``; a ConfigError where there can be none."""
    game, *_ = _envs(launch.cfg, launch.passed.env_setting)
    manager = launch.cfg.env.env_manager_type
    if not _has_two_sides(game):
        name = getattr(game, '__name__', game)
        text = f"got '{value}', but {name} has one side; take a game of two sides, or leave it out"
        raise ConfigError([f'{path}: {text}'])
    if manager not in ('vector', 'base'):
        text = f"got '{manager}', but opponents that learn live in this process; take 'vector' (or 'base')"
        raise ConfigError([f'env.env_manager_type: {text}'])
    return game


def _set_threads(threads: int | None, model: torch.nn.Module, stack: contextlib.ExitStack) -> None:
    """CPU threads of torch until ``stack`` closes; a second one helps only where a layer is 256 wide or wider."""
    wide = any(p.dim() > 1 and min(p.shape[0], p[0].numel()) >= 256 for p in model.parameters())
    if threads is not None or not wide:
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(threads or 1)


# ---- envs and buffers ----
def build_env_managers(
    cfg: EasyDict,
    env_setting: EnvSetting | None,
    seed: int,
    stack: contextlib.ExitStack,
    roles: tuple[str, ...] = ('actor', 'evaluator'),
    rivals: Opponents | None = None,
) -> list[Any]:
    """
    Overview:
        Launched and seeded env managers, one a role; ``stack`` closes them. The evaluator seeds its envs again before
        every evaluation; with ``env.replay_path`` its first env saves a video of each of its episodes. Games of
        two sides become duels, in which ``rivals`` are met while collecting; None: whom the config names.
    """
    made, *env_cfgs = _envs(cfg, env_setting)
    kind = cfg.env.env_manager_type
    managers: list[Any] = []
    if 'actor' in roles:
        _check_discount(cfg, _plays_itself(made, env_cfgs[0][0]), rivals)
    for role, cfgs in zip(('actor', 'evaluator'), env_cfgs):
        if role in roles:
            env_fn = _one_sided(made, cfgs[0], rivals if role == 'actor' else None)
            if role == 'evaluator' and cfg.env.replay_path:  # the episodes of its first env are filmed
                env_fn, cfgs = FilmedEnvs(env_fn), [{**c, 'replay_path': None} for c in cfgs]
                cfgs[0]['replay_path'] = cfg.env.replay_path
                kind = 'base' if kind == 'vector' else kind  # which has no single env to film
            manager = create_env_manager(kind, env_fn, cfgs, cfg.env.manager)
            stack.callback(manager.close)
            manager.seed(seed + (0 if role == 'actor' else EVALUATION_SEED_OFFSET), dynamic_seed=True)
            manager.launch()
            managers.append(manager)
    if len(managers) == 2 and managers[0].normalizer is not None:
        managers[1].normalizer.follow(managers[0].normalizer)
    return managers


def _check_discount(cfg: EasyDict, plays_itself: bool, rivals: Opponents | None) -> None:
    """A ConfigError unless the discount is negative just where each step is followed by one of the other side."""
    algo = cfg.policy.learn.algo
    gamma = algo.discount_factor if 'discount_factor' in algo else None
    if plays_itself and rivals is not None:
        raise ConfigError([f"env.opponent: got '{ITSELF}', but the commander chooses opponents; leave one of them out"])
    if gamma is not None and gamma != 0 and (gamma < 0) != plays_itself:
        text = f"must be negative with env.opponent '{ITSELF}', which plays both sides in turn, and only then"
        raise ConfigError([f'policy.learn.algo.discount_factor: got {gamma}, {text}'])


def env_info(cfg: EasyDict, env_setting: EnvSetting | None) -> Any:
    """The description of the collecting envs, of which none is launched."""
    if env_setting is None:
        cfg = EasyDict(cfg, env={**cfg.env, 'actor_env_num': 1, 'evaluator_env_num': 1})
    made, env_cfgs, _ = _envs(cfg, env_setting)
    env_fn = _one_sided(made, env_cfgs[0])
    with contextlib.closing(create_env_manager(cfg.env.env_manager_type, env_fn, env_cfgs, cfg.env.manager)) as manager:
        return manager.env_info()


def _has_two_sides(env_fn: Any) -> bool:
    return getattr(env_fn, 'sides', 1) == 2


def _plays_itself(env_fn: Any, cfg: dict) -> bool:
    return _has_two_sides(env_fn) and env_fn.complete_cfg(cfg).opponent == ITSELF


def _one_sided(env_fn: Any, cfg: dict, rivals: Opponents | None = None) -> Any:
    """What makes envs for one learner: of a game of two sides its duels, else what there is."""
    if not _has_two_sides(env_fn):
        return env_fn
    if rivals is None:
        from nervex.run.opponents import Opponents

        complete = env_fn.complete_cfg(cfg)
        if _plays_itself(env_fn, cfg):
            return Duels(env_fn)
        rivals = Opponents(env_fn, complete.opponent, complete.opponent_acts, complete.opponent_eps)
        rivals.check(cfg)
    return Duels(env_fn, rivals)


def _envs(cfg: EasyDict, env_setting: EnvSetting | None) -> EnvSetting:
    import_modules(cfg.env.import_names or [])
    return env_setting if env_setting is not None else get_vec_env_setting(cfg.env)


def build_buffer(cfg: EasyDict, exp_path: str, seed: int, env_info: Any, stack: contextlib.ExitStack) -> BufferManager:
    """
    Overview:
        The started buffers; ``stack`` closes them. BufferMemoryError if the observations alone do not fit into memory;
        what the other columns need is seen with the first rows.
    """
    policy = cfg.policy
    buffer = BufferManager(cfg.replay_buffer, None, exp_path, seed, policy.on_policy, policy.use_priority)
    stack.callback(buffer.close)
    space = env_info.obs_space
    if isinstance(space.shape, (tuple, list)):
        dtype = space.value.get('dtype') if isinstance(space.value, dict) else None
        buffer.plan({'obs': np.zeros(space.shape, dtype or np.float32)})
    buffer.start()
    return buffer


# ---- the policy and the sizes of its model ----
def policy_class(cfg: EasyDict, policy: type[Policy] | None) -> type[Policy]:
    """The class that the caller passed, or the one that the config names."""
    import_modules(cfg.policy.import_names or [])
    return policy if policy is not None else POLICY_REGISTRY.get(cfg.policy.policy_type)


def build_policy(
    cfg: EasyDict, cls: type[Policy], model: Any, env_info: Any, enable_field: tuple[str, ...] | None = None
) -> Policy:
    """The policy with its model; dimensions that the config leaves out come from the env."""
    keep_freed_memory()
    if problems := team_problems(env_info):
        raise ConfigError([f'env.env_type: in the info() of the env, {text}' for text in problems])
    policy_cfg = EasyDict(cfg.policy)
    check_env(cls, env_info._replace(rules=policy_cfg.game) if 'game' in policy_cfg else env_info)
    if not isinstance(model, torch.nn.Module):
        policy_cfg.model = fill_dimensions(cfg.policy.model, find_model(cfg.policy, cls, model, Problems()), env_info)
    return cls(policy_cfg, model=model, enable_field=enable_field)


def settle_game(cfg: EasyDict, cls: Any, env_info: Any) -> EasyDict:
    """The config, in which a policy that searches has the rules of its game; a ConfigError if nobody names them."""
    if 'game' not in (getattr(cls, 'action_kinds', None) or ()):
        return cfg
    rules = cfg.policy.game or env_info.rules
    check_env(cls, env_info._replace(rules=rules))
    return EasyDict(cfg, policy=EasyDict(cfg.policy, game=rules))


def load_policy(path: str, policy: type[Policy] | None = None, model: Any = None, recorded: bool = True) -> Policy:
    """
    Overview:
        A trained policy with its eval mode, by the config and the sizes that its checkpoint carries. It takes the
        observations of the env: where the run scaled them (``env.manager.norm_obs``), the policy does.
    Arguments:
        - path (:obj:`str`): a checkpoint, or the folder of a run, whose best one is taken
        - policy, model: what the caller of the run passed in place of what the config names
        - recorded (:obj:`bool`): False: batches will be of many sizes, so that a recording of the model is of no use
    """
    state = load_checkpoint_file(checkpoint_file(path))
    if state.get('config') is None:
        raise CheckpointError(
            f'{path}: was saved without a config; create_policy(compile_config(...).policy) makes a policy whose '
            'eval_mode.load_state_dict takes it'
        )
    cfg = EasyDict(state['config'])
    import_modules(cfg.import_names or [])
    if not recorded and 'graph' in cfg.policy.collect:
        cfg.policy.collect.graph = 'off'
    made = policy_class(cfg, policy)(cfg.policy, model=model, enable_field=('eval',))
    made.eval_mode.load_state_dict(state)
    return made


def load_weights(policy: Policy, state: dict[str, Any], path: str | None) -> None:
    """Give the eval mode the weights of a checkpoint, from ``path``; what scales observations stands elsewhere."""
    try:
        policy.eval_mode.load_state_dict({**state, 'attached': {}})
    except (RuntimeError, KeyError) as e:
        raise CheckpointError(f'{path}: is a checkpoint of another model: {e}') from e


def with_sizes(cfg: EasyDict, model_class: Any, env_info: Any) -> EasyDict:
    """
    Overview:
        ``cfg.policy.model`` with the sizes of the env; unchanged where they do not fit: whoever builds the policy
        beside its envs will say so.
    """
    try:
        return fill_dimensions(cfg.policy.model, model_class, env_info)
    except Exception as error:
        logger.debug('the sizes of the env do not fit: %s: %s', type(error).__name__, error)
        return cfg.policy.model


def fill_dimensions(model_cfg: dict, model_class: Any, env_info: Any) -> EasyDict:
    """
    Overview:
        Add the env's observation and action sizes, and whether actions are continuous, where the model wants them and
        the config does not give them; what the config gives must fit the env. A class None takes the two sizes.
    """
    (obs_dim, action_dim), kind = env_dimensions(env_info), action_kind(env_info)
    known: dict[str, Any] = dict.fromkeys(('obs_dim', 'obs_shape'), obs_dim)
    if kind in TEAMS:
        shapes = env_info.obs_space.shape
        known.update(dict.fromkeys(('agent_num', 'n_agent'), shapes['agent_state'][0]))
        known['global_obs_dim'] = shapes['global_state'][0] if 'global_state' in shapes else None
        known['alone_obs_dim'] = shapes['agent_alone_state'][1] if 'agent_alone_state' in shapes else None
    known.update(dict.fromkeys(('action_dim', 'action_shape', 'act_shape'), action_dim))
    known.update(dict.fromkeys(('continuous', 'continous'), None if kind is None else 'continuous' in kind))
    parameters = {} if model_class is None else inspect.signature(model_class).parameters
    wanted = ('obs_dim', 'action_dim') if model_class is None else parameters
    filled, problems = EasyDict(model_cfg), []
    for name, value in known.items():
        given = model_cfg[name] if name in model_cfg else None
        if given is not None:
            if value is not None and not np.array_equal(np.ravel(given), np.ravel(value)):
                text = f"got {given}, but the env has {value}; leave the key out to take the env's"
                problems.append(f'policy.model.{name}: {text}')
        elif value and name in wanted:
            filled[name] = value
        elif value is None and name in parameters and parameters[name].default is Parameter.empty:
            problems.append(f'policy.model.{name}: {_why_missing(name, env_info, model_class)}')
    if problems:
        raise ConfigError(problems)
    return filled


#: size of a team's model -> the part of observations that has it, and how to get it
_TEAM_PARTS = {
    'agent_num': ('agent_state', 'this model is for teams'),
    'global_obs_dim': ('global_state', 'give the env one, such as the observations of all agents side by side'),
    'alone_obs_dim': ('agent_alone_state', 'set env.observe_alone=True, or give the env one'),
}


def _why_missing(name: str, env_info: Any, model_class: Any) -> str:
    """Why the env gives no size for a setting of the model, and what to do."""
    taker, shape = f'model {getattr(model_class, "__name__", model_class)} takes', env_info.obs_space.shape
    if name in _TEAM_PARTS:
        part, remedy = _TEAM_PARTS[name]
        return f'observations have no part {part}, but {taker} its size; {remedy}'
    if not name.startswith('obs'):
        return (
            f'actions have the shape {env_info.act_space.shape}, but {taker} a number of actions; describe them in '
            "the env's info() as one row of choices or of numbers"
        )
    if not isinstance(shape, dict):
        return f'observations have the shape {shape}, but {taker} arrays with at least one axis'
    return (
        f'observations are a dict of {", ".join(key for key in shape if key != "action_mask")}, but {taker} one array; '
        'set env.flatten_obs=True (of a Gymnasium env) to join the parts to one vector, or give a model of your own '
        "(policy.model.model_type) that takes no obs_dim: its forward gets every part as inputs['obs'][key]"
    )


def env_dimensions(env_info: Any) -> tuple[Any, Any]:
    """Size of an observation (int or list) and of an action (a list for several heads); None: there is no one size."""
    obs, act = env_info.obs_space.shape, env_info.act_space
    if (kind := action_kind(env_info)) in TEAMS:
        seen = obs['agent_state'][1:]
        actions = max(act.value['n']) if kind == 'team' else act.shape[-1]
        return seen[0] if len(seen) == 1 else list(seen), actions
    if isinstance(obs, dict) and 'action_mask' in obs and len(obs) == 2:
        obs = next(shape for key, shape in obs.items() if key != 'action_mask')
    if isinstance(obs, dict) or obs is None:
        obs_dim = None
    else:
        obs_dim = obs[0] if len(obs) == 1 else list(obs)
    if kind == 'multi_discrete':
        return obs_dim, list(act.value['n'])
    return obs_dim, None if isinstance(act.shape, dict) or not act.shape else act.shape[0]
