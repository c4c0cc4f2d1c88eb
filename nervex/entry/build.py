"""The only wiring code: a resolved config -> envs, policy and workers that know each other."""

from __future__ import annotations

import contextlib
import inspect
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch
from easydict import EasyDict

from nervex.config import compile_config, save_config
from nervex.data import BufferManager
from nervex.entry.progress import Progress
from nervex.entry.stop_signals import StopSignals
from nervex.envs import get_vec_env_setting
from nervex.policy import Policy
from nervex.utils import COMMANDER_REGISTRY, LEARNER_REGISTRY, MODEL_REGISTRY, POLICY_REGISTRY, ConfigError
from nervex.utils.default_helper import set_pkg_seed
from nervex.utils.import_helper import import_modules
from nervex.worker.actor import BaseSerialActor, BaseSerialEvaluator
from nervex.worker.actor.env_manager import create_env_manager

EVALUATION_SEED_OFFSET = 100_000  # evaluation episodes are never among the first training episodes
EnvSetting = tuple[Callable[..., Any], list[dict], list[dict]]


@dataclass
class RunResult:
    """What a script needs to know about a finished run."""

    solved: bool
    final_return: float
    best_return: float
    env_steps: int
    train_iters: int
    episodes: int
    seconds: float
    seed: int
    exp_path: str
    ckpt_path: str
    checkpoint: str | None
    best_checkpoint: str | None
    log_path: str
    curve_path: str
    config: EasyDict = field(repr=False)
    history: list[tuple[int, int, float]] = field(repr=False)


def policy_class(cfg: EasyDict, policy: type[Policy] | None) -> type[Policy]:
    """The class that the caller passed, or the one that the config names."""
    import_modules(cfg.policy.import_names or [])
    return policy if policy is not None else POLICY_REGISTRY.get(cfg.policy.policy_type)


def build_env_managers(
    cfg: EasyDict, env_setting: EnvSetting | None, seed: int, roles: tuple[str, ...] = ('actor', 'evaluator')
) -> list[Any]:
    """
    Overview:
        Launched and seeded env managers, one a role. The evaluator seeds its envs again before every evaluation.
    """
    import_modules(cfg.env.import_names or [])
    env_fn, *env_cfgs = env_setting if env_setting is not None else get_vec_env_setting(cfg.env)
    managers = []
    for role, cfgs in zip(('actor', 'evaluator'), env_cfgs):
        if role in roles:
            manager = create_env_manager(cfg.env.env_manager_type, env_fn, cfgs, cfg.env.manager)
            managers.append(manager)
            manager.seed(seed + (0 if role == 'actor' else EVALUATION_SEED_OFFSET), dynamic_seed=True)
            manager.launch()
    return managers


def build_policy(
    cfg: EasyDict, cls: type[Policy], model: Any, env_info: Any, enable_field: tuple[str, ...] | None = None
) -> Policy:
    """The policy with its model; dimensions that the config leaves out come from the env."""
    policy_cfg = EasyDict(cfg.policy)
    if not isinstance(model, torch.nn.Module):
        policy_cfg.model = fill_dimensions(cfg.policy.model, model or _default_model_class(cls), env_info)
    return cls(policy_cfg, model=model, enable_field=enable_field)


def _default_model_class(cls: type[Policy]) -> Any:
    """The class behind ``default_model``; None for policies that build their model by themselves."""
    if cls._create_model_from_cfg is not Policy._create_model_from_cfg:
        return None
    name, import_names = cls.default_model(cls.__new__(cls))
    import_modules(import_names)
    return MODEL_REGISTRY.get(name)


def fill_dimensions(model_cfg: dict, model_class: Any, env_info: Any) -> EasyDict:
    """
    Overview:
        Add the env's observation and action sizes where the model wants them and the config does not give them; a size
        that the config gives must be the env's.
    """
    obs_dim, action_dim = env_dimensions(env_info)
    known = {
        'obs_dim': obs_dim,
        'obs_shape': obs_dim,
        'action_dim': action_dim,
        'action_shape': action_dim,
        'act_shape': action_dim,
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
        elif value is not None and name in wanted and (model_class is not None or name in ('obs_dim', 'action_dim')):
            filled[name] = value
    if problems:
        raise ConfigError(problems)
    return filled


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


def wide_layers(model: torch.nn.Module) -> bool:
    """Whether a layer is 256 wide or wider, so that a second CPU thread helps."""
    return any(p.dim() > 1 and min(p.shape[0], p[0].numel()) >= 256 for p in model.parameters())


class SerialRun:
    """
    Overview:
        Everything that one serial run needs, built and wired; a context manager that closes all of it.
    """

    def __init__(self, cfg: EasyDict, seed: int, env_setting: EnvSetting | None, cls: type[Policy], model: Any) -> None:
        self.cfg, self.seed = cfg, seed
        self.exp_path = cfg.exp_name or '.'
        self.solved = False
        self._start = time.perf_counter()
        self._stack = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:
            undo.callback(self._stack.close)
            set_pkg_seed(seed, use_cuda=cfg.policy.use_cuda)
            actor_env, evaluator_env = self._close_later(*build_env_managers(cfg, env_setting, seed))
            self.policy = build_policy(cfg, cls, model, actor_env.env_info())
            self._set_threads()
            os.makedirs(self.exp_path, exist_ok=True)
            save_config({**cfg, 'seed': seed}, os.path.join(self.exp_path, 'log', 'config.yaml'))
            (self.learner,) = self._close_later(LEARNER_REGISTRY.get('base')(cfg.learner, exp_name=self.exp_path))
            self.actor, self.evaluator, self.buffer = self._close_later(
                BaseSerialActor(cfg.actor, exp_name=self.exp_path, tb_logger=self.learner.tb_logger),
                BaseSerialEvaluator(cfg.evaluator, self.exp_path, seed=seed + EVALUATION_SEED_OFFSET),
                BufferManager(cfg.replay_buffer, exp_name=self.exp_path, seed=seed, on_policy=cfg.policy.on_policy),
            )
            self.learner.policy = self.policy.learn_mode
            self.actor.env, self.actor.policy = actor_env, self.policy.collect_mode
            self.evaluator.env, self.evaluator.policy = evaluator_env, self.policy.eval_mode
            self.commander = COMMANDER_REGISTRY.get('serial')(
                cfg.commander, self.learner, self.actor, self.evaluator, self.buffer, self.policy.command_mode
            )
            self.show(False)
            (self._signals,) = self._close_later(StopSignals())
            self._signals.install()
            undo.pop_all()

    def _close_later(self, *parts: Any) -> tuple[Any, ...]:
        for part in parts:
            self._stack.callback(part.close)
        return parts

    def _set_threads(self) -> None:
        threads = self.cfg.policy.torch_threads
        if threads is None and not wide_layers(self.policy._model):
            threads = 1
        if threads is not None:
            self._stack.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(threads)

    def __enter__(self) -> SerialRun:
        return self

    def __exit__(self, *exc: Any) -> None:
        self._stack.close()

    def show(self, progress: bool, total_log: bool = False) -> None:
        """Whether a person watches: a progress line, and the log lines of all workers."""
        (self.progress,) = self._close_later(Progress(self, progress, total_log))

    # ---- the steps of the loop ----
    def evaluate(self) -> bool:
        """Evaluate; keep a checkpoint of a new best; answer whether the run is solved."""
        self.solved, _ = self.evaluator.eval(self.learner.train_iter, envstep=self.actor.total_step)
        if self.evaluator.is_new_best() and self.learner.train_iter > 0:
            self.learner.save_checkpoint()
            self.learner.save_checkpoint('ckpt_best.pth.tar')
        self.progress.evaluated()
        return self.solved

    def collect(self) -> None:
        """Collect until the buffer holds enough rows for the next round of updates."""
        while True:
            data, _ = self.actor.generate_data(self.learner.train_iter)
            self.buffer.push_data(data)
            self.progress.update()
            if self.cfg.policy.on_policy or self.buffer.count() >= self._rows_wanted():
                return

    def _rows_wanted(self) -> int:
        learn = self.cfg.policy.learn
        size = self.policy._get_batch_size()
        batch = max(size.values()) if isinstance(size, dict) else size or 1
        return max(batch, learn.init_data_count if self.learner.train_iter == 0 else 0)

    def batches(self) -> Iterator[Any]:
        """The batches of one round of updates; an on-policy buffer empties itself behind the last one."""
        learn, size = self.cfg.policy.learn, self.policy._get_batch_size()
        epochs = learn.epochs if 'epochs' in learn else None
        if self.cfg.policy.on_policy and epochs is None:
            yield from islice(self.buffer.batches(size, learn.train_step, self.learner.train_iter), learn.train_step)
            self.buffer.clear()
        else:
            yield from self.buffer.batches(size, epochs or learn.train_step, self.learner.train_iter)

    def train(self, batch: Any) -> None:
        """One update, and its priorities back into the buffer."""
        self._signals.hold()
        self.learner.train(batch, self.actor.total_step)
        if self.learner.priority_info is not None and self.cfg.policy.use_priority:
            self.buffer.update(self.learner.priority_info)
        self._signals.release()

    def result(self) -> RunResult:
        """Counters and paths, for the caller."""
        learner, best = self.learner, os.path.join(self.learner.ckpt_path, 'ckpt_best.pth.tar')
        return RunResult(
            solved=self.solved,
            final_return=self.evaluator.last.mean if self.evaluator.last else float('nan'),
            best_return=self.evaluator.best,
            env_steps=self.actor.total_step,
            train_iters=learner.train_iter,
            episodes=self.actor.total_episode,
            seconds=time.perf_counter() - self._start,
            seed=self.seed,
            exp_path=self.exp_path,
            ckpt_path=learner.ckpt_path,
            checkpoint=learner.last_checkpoint,
            best_checkpoint=best if os.path.exists(best) else None,
            log_path=os.path.join(self.exp_path, 'log'),
            curve_path=self.evaluator.curve_path,
            config=self.cfg,
            history=list(self.evaluator.history),
        )


def build_serial(
    cfg: str | dict,
    seed: int | None,
    env_setting: EnvSetting | None = None,
    policy: type[Policy] | None = None,
    model: Any = None,
    overrides: tuple[str, ...] = (),
) -> SerialRun:
    """
    Overview:
        Check and resolve the config, then build the run. A config error is raised before any file or process exists.
    Arguments:
        - seed (:obj:`int | None`): None draws one
        - policy, model: classes (or a model instance) that take the place of what the config names
    """
    resolved = compile_config(cfg, policy=policy, model=model, env=env_setting, overrides=list(overrides))
    if seed is None:
        seed = int.from_bytes(os.urandom(4), 'little') % 2**31
    return SerialRun(resolved, seed, env_setting, policy_class(resolved, policy), model)
