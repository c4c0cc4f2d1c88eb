"""The only wiring code: a resolved config -> envs, policy and workers that know each other."""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

import numpy as np
import torch
from easydict import EasyDict

from nervex.config import compile_config, read_config, save_config
from nervex.data import BufferManager
from nervex.envs import get_vec_env_setting
from nervex.policy import Policy
from nervex.policy.suits import check_env
from nervex.run.folder import RunFolder, SavedRun, saved_run
from nervex.run.result import RunResult
from nervex.run.serial_run import SerialRun
from nervex.run.state import ABOUT_THE_RUN, cut_logs, newest_state
from nervex.utils import (
    ACTOR_REGISTRY,
    COMMANDER_REGISTRY,
    LEARNER_REGISTRY,
    MODEL_REGISTRY,
    POLICY_REGISTRY,
    CheckpointError,
    ConfigError,
)
from nervex.utils.class_config import merge_config
from nervex.utils.default_helper import set_pkg_seed
from nervex.utils.file_helper import remove_unfinished
from nervex.utils.import_helper import import_modules
from nervex.worker.actor import BaseSerialEvaluator
from nervex.worker.actor.env_manager import NormalizedEnvManager, create_env_manager

logger = logging.getLogger(__name__)
EVALUATION_SEED_OFFSET = 100_000  # evaluation episodes are never among the first training episodes
EnvSetting = tuple[Callable[..., Any], list[dict], list[dict]]


@dataclass(frozen=True)
class Passed:
    """What a caller passes beside the config, in place of what it names."""

    env_setting: EnvSetting | None = None
    policy: type[Policy] | None = None
    model: Any = None  # a class, or the module itself


@dataclass(frozen=True)
class Launch:
    """
    Overview:
        What is to run, known before any file or process exists; ``prepare_launch`` makes it for every mode.
    Arguments:
        - cfg (:obj:`EasyDict`): resolved; ``exp_name`` of a run that goes on is its folder
        - saved (:obj:`SavedRun | None`): the stopped run that this one goes on from; None: a new one
    """

    cfg: EasyDict
    seed: int
    passed: Passed
    saved: SavedRun | None

    def already(self) -> RunResult | None:
        """How the run ended that this one would go on from, if it would end there, too; the log says so."""
        result = None if self.saved is None else self.saved.result(self.cfg)
        if result is not None:
            logger.warning(
                '%s: already %s; nothing is changed. It goes on with %s',
                self.saved.folder,
                result.verdict,
                'another evaluator.stop_val' if result.solved else 'a higher limit, -o commander.max_env_step=...',
            )
        return result

    def newest_state(self) -> dict[str, Any] | None:
        """The state that the run goes on from. Without any it begins anew from its seed, if it was not finished."""
        _, state = (None, None) if self.saved is None else newest_state(self.saved.ckpt_path)
        if state is None and self.saved is not None:
            if self.saved.finished:
                raise CheckpointError(
                    f'{self.saved.folder}: is finished, and has no saved state to go on from (learner.resume.'
                    'interval_s was null); start a new run from its checkpoint with --load'
                )
            logger.warning('%s: no saved state yet; the run begins anew from its seed', self.saved.ckpt_path)
        return state

    def open_folder(
        self, stack: contextlib.ExitStack, sizes: dict[str, int], kept: tuple[str, ...] = ABOUT_THE_RUN
    ) -> RunFolder:
        """
        Overview:
            The run's folder, owned until ``stack`` closes. Where a run goes on, what was written after its saved state
            is taken back; call it before the workers open their logs.
        Arguments:
            - sizes (:obj:`dict`): bytes of the logs at that state
            - kept (:obj:`tuple[str, ...]`): logs that stay whole
        """
        folder = RunFolder(self.cfg.exp_name or '.', resume=self.saved is not None)
        stack.callback(folder.close)
        if self.saved is not None:
            for left in (self.saved.ckpt_path, folder.log):
                remove_unfinished(left)
            cut_logs(folder.log, sizes, kept)
        return folder

    def describe(self, folder: RunFolder, ckpt_path: str) -> None:
        """Write ``log/config.yaml`` and ``log/run.yaml`` of a new run; one that goes on has them."""
        if self.saved is None:
            os.makedirs(folder.log, exist_ok=True)
            save_config({**self.cfg, 'seed': self.seed}, os.path.join(folder.log, 'config.yaml'))
            folder.describe(self.seed, ckpt_path)


def prepare_launch(
    cfg: str | dict | None,
    seed: int | None,
    passed: Passed = Passed(),
    overrides: tuple[str, ...] = (),
    resume: str | None = None,
) -> Launch:
    """
    Overview:
        Check and resolve a config for any mode; all its errors are raised here.
    Arguments:
        - cfg (:obj:`str | dict | None`): path, built-in name or dict; None only with ``resume``
        - seed (:obj:`int | None`): None draws one; a run that goes on has its own
        - resume (:obj:`str | None`): folder of a stopped run
    """
    saved = None if resume is None else saved_run(resume)
    if saved is not None and cfg is None:
        cfg = saved.config
    resolved = compile_config(
        cfg, policy=passed.policy, model=passed.model, env=passed.env_setting, overrides=list(overrides)
    )
    if saved is not None:
        saved.check_same(resolved)
        resolved.exp_name, seed = resume, saved.seed
    if seed is None:
        seed = int.from_bytes(os.urandom(4), 'little') % 2**31
    return Launch(resolved, seed, passed, saved)


def without_collecting(cfg: str | Mapping) -> dict:
    """The config with a size of collecting, which the actor's section must have although nothing is collected."""
    given = dict(read_config(cfg) if isinstance(cfg, (str, os.PathLike)) else cfg)
    actor = given.get('actor') or {}
    if actor.get('n_sample') is None and actor.get('n_episode') is None:
        given['actor'] = merge_config(actor, dict(n_sample=1))
    return given


def policy_class(cfg: EasyDict, policy: type[Policy] | None) -> type[Policy]:
    """The class that the caller passed, or the one that the config names."""
    import_modules(cfg.policy.import_names or [])
    return policy if policy is not None else POLICY_REGISTRY.get(cfg.policy.policy_type)


def build_env_managers(
    cfg: EasyDict,
    env_setting: EnvSetting | None,
    seed: int,
    stack: contextlib.ExitStack,
    roles: tuple[str, ...] = ('actor', 'evaluator'),
) -> list[Any]:
    """
    Overview:
        Launched and seeded env managers, one a role; ``stack`` closes them. The evaluator seeds its envs again before
        every evaluation.
    """
    import_modules(cfg.env.import_names or [])
    env_fn, *env_cfgs = env_setting if env_setting is not None else get_vec_env_setting(cfg.env)
    managers = []
    for role, cfgs in zip(('actor', 'evaluator'), env_cfgs):
        if role in roles:
            manager = create_env_manager(cfg.env.env_manager_type, env_fn, cfgs, cfg.env.manager)
            stack.callback(manager.close)
            manager.seed(seed + (0 if role == 'actor' else EVALUATION_SEED_OFFSET), dynamic_seed=True)
            manager.launch()
            managers.append(manager)
    if len(managers) == 2 and isinstance(managers[0], NormalizedEnvManager):
        managers[1].normalizer.follow(managers[0].normalizer)
    return managers


def env_info(cfg: EasyDict, env_setting: EnvSetting | None) -> Any:
    """The description of the collecting envs, of which none is launched."""
    import_modules(cfg.env.import_names or [])
    env_fn, env_cfgs, _ = env_setting if env_setting is not None else get_vec_env_setting(cfg.env)
    manager = create_env_manager(cfg.env.env_manager_type, env_fn, env_cfgs, cfg.env.manager)
    try:
        return manager.env_info()
    finally:
        manager.close()


def build_policy(
    cfg: EasyDict, cls: type[Policy], model: Any, env_info: Any, enable_field: tuple[str, ...] | None = None
) -> Policy:
    """The policy with its model; dimensions that the config leaves out come from the env."""
    check_env(cls, env_info)
    policy_cfg = EasyDict(cfg.policy)
    if not isinstance(model, torch.nn.Module):
        policy_cfg.model = fill_dimensions(cfg.policy.model, model or _model_class(cls, cfg.policy), env_info)
    return cls(policy_cfg, model=model, enable_field=enable_field)


def _model_class(cls: type[Policy], cfg_policy: EasyDict) -> Any:
    """The class that ``policy.model`` is for; None for policies that build their model by themselves."""
    if 'model_type' in cfg_policy.model and cfg_policy.model.model_type is not None:
        import_modules((cfg_policy.model.import_names if 'import_names' in cfg_policy.model else None) or [])
        return MODEL_REGISTRY.get(cfg_policy.model.model_type)
    if cls._create_model_from_cfg is not Policy._create_model_from_cfg:
        return None
    probe = cls.__new__(cls)
    probe._cfg = cfg_policy
    name, import_names = probe.default_model()
    import_modules(import_names)
    return MODEL_REGISTRY.get(name)


def fill_dimensions(model_cfg: dict, model_class: Any, env_info: Any) -> EasyDict:
    """
    Overview:
        Add the env's observation and action sizes, and whether actions are continuous, where the model wants them and
        the config does not give them; what the config gives must fit the env.
    """
    obs_dim, action_dim = env_dimensions(env_info)
    known = {
        'obs_dim': obs_dim,
        'obs_shape': obs_dim,
        'action_dim': action_dim,
        'action_shape': action_dim,
        'act_shape': action_dim,
        'continuous': acts_continuously(env_info),
        'continous': acts_continuously(env_info),
    }
    filled = EasyDict(model_cfg)
    wanted = known if model_class is None else inspect.signature(model_class).parameters
    problems = []
    for name, value in known.items():
        given = model_cfg[name] if name in model_cfg else None
        if given is not None:
            if value is not None and not _same_dimension(given, value):
                problems.append(
                    f"policy.model.{name}: got {given}, but the env has {value}; leave the key out to take the env's"
                )
        elif value and name in wanted and (model_class is not None or name in ('obs_dim', 'action_dim')):
            filled[name] = value
        elif value is None and model_class is not None and name in wanted and wanted[name].default is Parameter.empty:
            problems.append(f'policy.model.{name}: {_why_missing(name, env_info, model_class)}')
    if problems:
        raise ConfigError(problems)
    return filled


def _why_missing(name: str, env_info: Any, model_class: Any) -> str:
    """Why the env gives no size for a setting of the model, and what to do."""
    taker = f'model {getattr(model_class, "__name__", model_class)} takes'
    if name.startswith('obs'):
        shape = env_info.obs_space.shape
        if not isinstance(shape, dict):
            return f'observations have the shape {shape}, but {taker} arrays with at least one axis'
        parts = ', '.join(key for key in shape if key != 'action_mask')
        return (
            f'observations are a dict of {parts}, but {taker} one array; set env.flatten_obs=True (of a Gymnasium env) '
            'to join the parts, or name a model of your own for dicts in policy.model.model_type'
        )
    return (
        f'actions have the shape {env_info.act_space.shape}, but {taker} a number of actions; describe them in '
        "the env's info() as one row of choices or of numbers"
    )


def _same_dimension(given: Any, value: Any) -> bool:
    def listed(x: Any) -> list:
        return list(x) if isinstance(x, (list, tuple)) else [x]

    return listed(given) == listed(value)


def env_dimensions(env_info: Any) -> tuple[Any, Any]:
    """Size of an observation (int or list) and of an action (a list for several heads); None: there is no one size."""
    obs_shape, act = env_info.obs_space.shape, env_info.act_space
    if isinstance(obs_shape, dict) and 'action_mask' in obs_shape and len(obs_shape) == 2:
        obs_shape = next(shape for key, shape in obs_shape.items() if key != 'action_mask')
    obs_dim = (
        None
        if isinstance(obs_shape, dict) or obs_shape is None
        else obs_shape[0]
        if len(obs_shape) == 1
        else list(obs_shape)
    )
    value = act.value if isinstance(act.value, dict) else {}
    if value.get('kind') == 'multi_discrete':
        return obs_dim, list(value['n'])
    return obs_dim, None if isinstance(act.shape, dict) or not act.shape else act.shape[0]


def acts_continuously(env_info: Any) -> bool | None:
    """Whether actions are numbers and not choices; None: the env does not say."""
    value = env_info.act_space.value
    kind = value.get('kind') if isinstance(value, dict) else None
    return None if kind is None else kind == 'continuous'


def wide_layers(model: torch.nn.Module) -> bool:
    """Whether a layer is 256 wide or wider, so that a second CPU thread helps."""
    return any(p.dim() > 1 and min(p.shape[0], p[0].numel()) >= 256 for p in model.parameters())


def build_serial(
    cfg: str | dict | None,
    seed: int | None,
    env_setting: EnvSetting | None = None,
    policy: type[Policy] | None = None,
    model: Any = None,
    overrides: tuple[str, ...] = (),
    resume: str | None = None,
) -> SerialRun:
    """
    Overview:
        Check and resolve the config, then build the run. A config error is raised before any file or process exists.
    Arguments:
        - seed (:obj:`int | None`): None draws one; a resumed run has its own
        - policy, model: classes (or a model instance) that take the place of what the config names
        - resume (:obj:`str | None`): folder of a stopped run; ``cfg`` may then be None
    """
    return start_serial(prepare_launch(cfg, seed, Passed(env_setting, policy, model), overrides, resume))


def start_serial(launch: Launch) -> SerialRun:
    """Build the run, and put it where the saved one was that it goes on from."""
    state = launch.newest_state()
    with contextlib.ExitStack() as if_it_fails:
        stack = if_it_fails.enter_context(contextlib.ExitStack())
        folder = launch.open_folder(stack, {} if state is None else state['log_sizes'])
        run = SerialRun(launch.cfg, launch.seed, folder, stack, **_build_workers(launch, folder.path, stack))
        if launch.saved is not None:
            run.learner.ckpt_path = launch.saved.ckpt_path
        launch.describe(folder, run.learner.ckpt_path)
        if state is not None:
            run.resume(state)
        if_it_fails.pop_all()
    return run


def _build_workers(launch: Launch, exp_path: str, stack: contextlib.ExitStack) -> dict[str, Any]:
    """Envs, policy and workers that know each other; ``stack`` closes them."""

    def closed_later(part: Any) -> Any:
        stack.callback(part.close)
        return part

    cfg, seed, passed = launch.cfg, launch.seed, launch.passed
    set_pkg_seed(seed, use_cuda=cfg.policy.use_cuda)
    actor_env, evaluator_env = build_env_managers(cfg, passed.env_setting, seed, stack)
    policy = build_policy(cfg, policy_class(cfg, passed.policy), passed.model, actor_env.env_info())
    policy.check_resume()
    _set_threads(cfg.policy.torch_threads, policy._model, stack)
    learner = closed_later(LEARNER_REGISTRY.get(cfg.learner.learner_type)(cfg.learner, exp_name=exp_path))
    actor = closed_later(ACTOR_REGISTRY.get(cfg.actor.actor_type)(cfg.actor, exp_path, learner.tb_logger, seed))
    evaluator = closed_later(BaseSerialEvaluator(cfg.evaluator, exp_path, seed=seed + EVALUATION_SEED_OFFSET))
    buffer = build_buffer(cfg, exp_path, seed, actor_env.env_info(), stack)
    learner.policy = policy.learn_mode
    if isinstance(actor_env, NormalizedEnvManager):
        learner.attach('normalizer', actor_env.normalizer)
    actor.env, actor.policy = actor_env, policy.collect_mode
    evaluator.env, evaluator.policy = evaluator_env, policy.eval_mode
    commander = COMMANDER_REGISTRY.get(cfg.commander.commander_type)(
        cfg.commander, learner, actor, evaluator, buffer, policy.command_mode
    )
    return dict(policy=policy, learner=learner, actor=actor, evaluator=evaluator, buffer=buffer, commander=commander)


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


def _set_threads(threads: int | None, model: torch.nn.Module, stack: contextlib.ExitStack) -> None:
    if threads is None and not wide_layers(model):
        threads = 1
    if threads is not None:
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(threads)
