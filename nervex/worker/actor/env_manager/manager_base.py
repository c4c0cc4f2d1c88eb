"""What all env managers share: options, states, seeds, and the documented mapping form on top of the block form."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nervex.envs.hosting.actions import ActionRows
from nervex.envs.hosting.calls import METHOD, STEP_TIME
from nervex.utils.errors import ConfigError, nearest
from nervex.worker.actor.env_manager.advice import advise, joined
from nervex.worker.actor.env_manager.fault_log import FaultLog
from nervex.worker.actor.env_manager.forms import DocumentedForms
from nervex.worker.actor.env_manager.step_block import EnvState, EnvStateError, StepBlock


class EnvManager(DocumentedForms):
    """
    Overview:
        N envs behind one interface. ``observe`` / ``advance`` move blocks and are what the actor uses; ``ready_obs`` /
        ``step`` are the documented form with one row an env and copy everything.
    Arguments:
        - env_fn (:obj:`Callable`): makes an env from a config: a BaseEnv class, or a function (Gym objects are adapted)
        - env_cfg (:obj:`Sequence[dict]`): one config an env; they may differ
        - env_num (:obj:`int`): the number of envs; must agree with ``env_cfg``
        - episode_num (:obj:`int | float | str`): episodes for each env before it is done; 'inf' for no limit
        - manager_cfg (:obj:`dict`): settings over the defaults in ``config``
    Interfaces:
        launch, reset, seed, close, ready_obs, next_obs, step, observe, advance, done, ready_env, active_env, env_info,
        env_num, all_ids, enable_save_replay; any other attribute is read from the envs (a list, one value an env)
    """

    asynchronous = False  # whether advance() may answer for other envs than those it was asked to step
    kind = 'base'  # what ``env.env_manager_type`` calls it
    partial_steps = True  # whether some of the ready envs may be stepped without the others

    config: dict = dict(
        episode_num=float('inf'),  # episodes of each env until it is done; 'inf' or a number
        auto_reset=True,  # begin the next episode at once; False: reset(reset_param) is called by hand
        max_retry=1,  # restarts in a row without one good step that are borne; tries of a failing reset
        retry_type='reset',  # after a fault: 'reset' the env, or 'renew' it (close it and make another)
        retry_waiting_time=0.1,  # seconds between two tries
        step_timeout=60,  # seconds for one step (needs a subprocess or thread manager)
        reset_timeout=60,  # seconds for one reset
        connect_timeout=60,  # seconds for making the envs
        wait_num=2,  # async: a step answers as soon as so many envs have finished ...
        step_wait_timeout=0.01,  # ... or so many seconds have passed and at least one has
        envs_per_worker=1,  # envs that share one subprocess
        hybrid=False,  # sync: this process steps its share beside the children; see the class for when
        shared_memory=True,  # False: observations travel by pipe
        norm_obs=False,  # True: scale observations by their running mean and variance, over all envs
        norm_reward=False,  # True: scale rewards by the spread of the discounted return
        norm_clip=10.0,  # scaled values are cut to [-norm_clip, norm_clip]
        norm_discount=0.99,  # of the return whose spread scales rewards
        context=None,  # 'fork' | 'forkserver' | 'spawn'; None: fork where it is safe, else forkserver
    )

    def __init__(
        self,
        env_fn: Callable[[dict], Any],
        env_cfg: Sequence[dict],
        env_num: int | None = None,
        episode_num: Any = None,
        manager_cfg: Mapping | None = None,
    ) -> None:
        if isinstance(env_cfg, Mapping) or not isinstance(env_cfg, Sequence) or not env_cfg:
            raise TypeError(f'env_cfg must be a list with one config for each env, got {env_cfg!r}')
        if env_num is not None and env_num != len(env_cfg):
            raise ValueError(f'env_num is {env_num}, but env_cfg has {len(env_cfg)} configs')
        if not callable(env_fn):
            raise TypeError(f'env_fn must be a BaseEnv class or a function that makes an env, got {env_fn!r}')
        self._env_fn, self._env_cfg = env_fn, [dict() if c is None else c for c in env_cfg]
        self._env_num = len(env_cfg)
        self._cfg = self._complete(manager_cfg)
        if episode_num is not None:
            self._cfg['episode_num'] = episode_num
        self._episode_num = _episode_num(self._cfg['episode_num'])
        self.all_ids = np.arange(self._env_num, dtype=np.int64)
        self._all_bytes = self.all_ids.tobytes()
        self._states = [EnvState.VOID] * self._env_num
        self._episodes = [0] * self._env_num
        self._seeds: list[int | None] = [None] * self._env_num
        self._dynamic_seed: bool | None = None
        self._reset_param: dict[int, dict] = {}
        self._replay_paths: list[str] | None = None
        self._env_info: Any = None
        self._closed = True
        self._max_retry = int(self._cfg['max_retry'])
        self.faults = FaultLog(self._env_num, self._max_retry, self._describe)

    # ------------------------------------------------------------------ to be filled in by each kind
    def observe(self) -> tuple[np.ndarray, Any]:
        """(ids in ascending order, block) of the envs that wait for an action. Do not write to it."""
        raise NotImplementedError

    def advance(self, ids: np.ndarray, actions: Any) -> StepBlock:
        """Step the envs ``ids`` with one row of ``actions`` each."""
        raise NotImplementedError

    def _open(self) -> None:
        raise NotImplementedError

    def _reset(self, ids: list[int]) -> None:
        raise NotImplementedError

    def _shut(self) -> None:
        raise NotImplementedError

    def _call(self, name: str, calls: list[tuple[tuple, dict]] | None, ids: Iterable[int]) -> list[Any]:
        """Read an attribute (calls None) or call a method of each env."""
        raise NotImplementedError

    # ------------------------------------------------------------------ life
    def launch(self, reset_param: Any = None) -> None:
        """Make the envs and begin their first episodes."""
        if not self._closed:
            raise EnvStateError('launch(): the envs are running already; close() first, or use reset()')
        self._reset_param = self._reset_params(reset_param)
        self._closed = False
        try:
            self._open()
            if self._replay_paths is not None:
                self._call('enable_save_replay', [((p,), {}) for p in self._replay_paths], range(self._env_num))
                self._reset(list(range(self._env_num)))
        except BaseException:
            self.close()
            raise

    def reset(self, reset_param: Any = None) -> None:
        """
        Overview:
            Begin new episodes and count episodes from 0 again.
        Arguments:
            - reset_param (:obj:`dict | list | None`): env_id -> keyword arguments for ``env.reset``: resets these envs;
              a list has one dict an env; None resets all. Kept for the automatic resets that follow.
        """
        self._check_open('reset')
        param = self._reset_params(reset_param)
        self._reset_param.update(param)
        self._reset(sorted(param) if isinstance(reset_param, Mapping) else list(range(self._env_num)))

    def seed(self, seed: int | Sequence[int] | Mapping[int, int], dynamic_seed: bool | None = None) -> None:
        """
        Overview:
            Seed the envs: an int s gives env i the seed s + i; a list has one seed an env; a dict env_id -> seed.
            Before ``launch`` or after it (then it counts from the next reset on).
        Arguments:
            - dynamic_seed (:obj:`bool | None`): True: every episode differs; False: all episodes begin alike; None: as
              the env has it by default
        """
        if isinstance(seed, Mapping):
            seeds = {self._check_id(i): int(s) for i, s in seed.items()}
        elif isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
            seeds = {i: int(seed) + i for i in range(self._env_num)}
        elif isinstance(seed, (Sequence, np.ndarray)) and not isinstance(seed, str):
            if len(seed) != self._env_num:
                raise ValueError(f'seed: {self._env_num} envs need {self._env_num} seeds, got {len(seed)}')
            seeds = {i: int(s) for i, s in enumerate(seed)}
        else:
            raise TypeError(f'seed must be an int, a list or a dict env_id -> seed, got {seed!r}')
        for i, s in seeds.items():
            self._seeds[i] = s
        self._dynamic_seed = dynamic_seed
        if not self._closed:
            self._send_seeds(sorted(seeds))

    def _send_seeds(self, ids: list[int]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """End the envs and free everything; may be called twice."""
        if self._closed:
            return
        self._closed = True
        self._states = [EnvState.VOID] * self._env_num
        self._shut()

    def __enter__(self) -> 'EnvManager':
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    # ------------------------------------------------------------------ what is asked about
    @property
    def env_num(self) -> int:
        """The number of envs."""
        return self._env_num

    @property
    def ready_env(self) -> list[int]:
        """Ids of the envs that wait for an action."""
        return [int(i) for i in self._ready_ids()]

    @property
    def active_env(self) -> list[int]:
        """Ids of the envs that still have episodes to play."""
        return [i for i, s in enumerate(self._states) if s not in (EnvState.VOID, EnvState.DONE, EnvState.ERROR)]

    @property
    def done(self) -> bool:
        """Whether every env has played its ``episode_num`` episodes; never, if that is inf."""
        return all(s is EnvState.DONE for s in self._states)

    @property
    def closed(self) -> bool:
        """True before ``launch`` and after ``close``."""
        return self._closed

    @property
    def env_states(self) -> dict[int, EnvState]:
        """env_id -> EnvState."""
        return dict(enumerate(self._states))

    def env_info(self) -> Any:
        """The description (``env.info()``) of the envs; before ``launch`` one env is made and closed to ask it."""
        if self._env_info is None:
            env = self._env_fn(self._env_cfg[0])
            if not callable(getattr(env, 'info', None)):
                from nervex.envs import GymEnv

                env = GymEnv(env)
            try:
                self._env_info = env.info()
            finally:
                env.close()
        return self._env_info

    def advice(self) -> str | None:
        """One sentence on the envs' step time and the kind of manager that suits it; None while it is not known."""
        times = self._call(STEP_TIME, [((), {})] * self._env_num, range(self._env_num))
        if any(time is None for time in times):
            return None
        hosts = len(set(times))
        return advise(self.kind, joined(times, max(1, self._env_num // hosts)))

    def enable_save_replay(self, replay_path: str | Sequence[str]) -> None:
        """Save videos of the following episodes; one path for all envs, or one each."""
        paths = [replay_path] * self._env_num if isinstance(replay_path, str) else list(replay_path)
        if len(paths) != self._env_num:
            raise ValueError(f'enable_save_replay: {self._env_num} envs need {self._env_num} paths, got {len(paths)}')
        self._replay_paths = paths
        if not self._closed:
            self._call('enable_save_replay', [((p,), {}) for p in paths], range(self._env_num))

    def __getattr__(self, name: str) -> Any:
        """An attribute of the envs: a list of values, or (for a method) a function that answers such a list."""
        if name.startswith('_') or self.__dict__.get('_closed', True):
            raise AttributeError(f'{type(self).__name__} has no attribute {name!r} (those of the envs need launch())')
        values = self._call(name, None, range(self._env_num))
        if not any(isinstance(v, str) and v == METHOD for v in values):
            return values
        return lambda *args, **kwargs: self._call(name, [(args, kwargs)] * self._env_num, range(self._env_num))

    def __repr__(self) -> str:
        state = 'closed' if self._closed else f'{len(self.ready_env)} of {self._env_num} ready'
        return f'{type(self).__name__}({getattr(self._env_fn, "__name__", self._env_fn)} x {self._env_num}, {state})'

    # ------------------------------------------------------------------ inside
    def _are_all(self, ids: Any) -> bool:
        """Whether these are the ids of all envs, in their order; the bytes are compared in 0.1 us."""
        return len(ids) == self._env_num and np.asarray(ids).tobytes() == self._all_bytes

    def _ready_ids(self) -> Any:
        raise NotImplementedError

    def _describe(self, env_id: int) -> str:
        return f'env_fn: {self._env_fn!r}\nconfig of env {env_id}: {dict(self._env_cfg[env_id])}'

    def _set_info(self, info: Any) -> None:
        self._env_info = info
        self._action_rows = ActionRows(getattr(info, 'act_space', None))

    def _check_open(self, what: str) -> None:
        if self._closed:
            raise EnvStateError(f'{what}: the envs are not running; call launch() first')

    def _check_id(self, env_id: Any) -> int:
        if isinstance(env_id, bool) or not isinstance(env_id, (int, np.integer)) or not 0 <= env_id < self._env_num:
            raise EnvStateError(f'unknown env id {env_id!r}; the ids are 0 to {self._env_num - 1}')
        return int(env_id)

    def _refuse(self, ids: Iterable[int]) -> None:
        """Raise for ids that may not be stepped now, with the reason for each."""
        ids = [self._check_id(i) for i in ids]
        if len(set(ids)) != len(ids):
            raise EnvStateError(f'an env was given two actions in one step: {ids}')
        ready = set(self.ready_env)
        if not ids:
            raise EnvStateError(f'no env was given an action; ready are {sorted(ready)}')
        bad = [f'env {i} ({self._states[i].name})' for i in ids if i not in ready]
        raise EnvStateError(f'not ready for an action: {", ".join(bad)}; ready are {sorted(ready)}')

    def _reset_params(self, param: Any) -> dict[int, dict]:
        if param is None:
            return {}
        if isinstance(param, Mapping):
            return {self._check_id(i): dict(kwargs or {}) for i, kwargs in param.items()}
        if isinstance(param, Sequence) and len(param) == self._env_num:
            return {i: dict(kwargs or {}) for i, kwargs in enumerate(param)}
        raise ValueError(f'reset_param: a dict env_id -> keyword arguments, or {self._env_num} dicts; got {param!r}')

    @classmethod
    def default_config(cls) -> dict:
        """The settings of this kind of manager, with those that it inherits."""
        merged: dict = {}
        for base in reversed(cls.__mro__):
            merged.update(base.__dict__.get('config') or {})
        return merged

    def _complete(self, cfg: Mapping | None) -> dict:
        merged = self.default_config()
        for key, value in (cfg or {}).items():
            if key == 'type':
                continue
            if key not in merged:
                near = nearest(key, merged)
                raise ConfigError(
                    f'env.manager.{key}: unknown setting{f"; did you mean {near!r}?" if near else ""} '
                    f'Known: {", ".join(sorted(merged))}'
                )
            merged[key] = value
        if merged['retry_type'] not in ('reset', 'renew'):
            raise ConfigError(f"env.manager.retry_type: 'reset' or 'renew', got {merged['retry_type']!r}")
        return merged


def _episode_num(value: Any) -> float:
    if value in ('inf', float('inf')):
        return float('inf')
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"episode_num: 'inf' or an int >= 1, got {value!r}")
    return int(value)
