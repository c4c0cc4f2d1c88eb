"""EnvManager: N envs behind one interface, wherever they live and however one waits for them."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from nervex.envs.hosting.messages import HostSetup
from nervex.envs.hosting.one_env import METHOD
from nervex.loader import interval, numeric
from nervex.loader.sections import complete
from nervex.rl_utils.normalize import Normalizer
from nervex.utils import tree
from nervex.utils.declare import declared_config, setting, settings
from nervex.worker.actor.env_manager.backend import Backend, InProcess, WorkerLost
from nervex.worker.actor.env_manager.fault_log import FaultLog
from nervex.worker.actor.env_manager.groups import Groups
from nervex.worker.actor.env_manager.normalize import Scaled
from nervex.worker.actor.env_manager.running import Running
from nervex.worker.actor.env_manager.step_block import (
    EnvState,
    EnvStateError,
    RowMap,
    StepBlock,
    TimestepMap,
    as_tensor,
    check_id,
    step_map,
)

logger = logging.getLogger(__name__)

SECONDS = numeric() & interval(0)


class EnvManager:
    """
    Overview:
        N envs behind one interface. ``observe`` / ``advance`` move blocks and are what the actor uses; ``ready_obs`` /
        ``step`` are the documented form with one row an env and copy everything.

        Where the envs live is the business of ``backend``. ``together`` says how a step waits: until all envs that were
        asked have answered (True), or for whichever are ready (False): as soon as ``wait_num`` are, or after
        ``step_wait_timeout`` if one is; episodes then begin in the background, and so do envs that failed.
    Arguments:
        - env_fn (:obj:`Callable`): makes an env from a config: a BaseEnv class, or a function (Gym objects are adapted)
        - env_cfg (:obj:`Sequence[dict]`): one config an env; they may differ
        - env_num (:obj:`int`): the number of envs; must agree with ``env_cfg``
        - episode_num (:obj:`int | float | str`): episodes for each env before it is done; 'inf' for no limit
        - manager_cfg (:obj:`dict`): settings over the defaults in ``config``
    Interfaces:
        launch, reset, seed, close, ready_obs, next_obs, step, observe, advance, done, ready_env, active_env, env_info,
        env_num, all_ids, enable_save_replay, state_dict, load_state_dict; any other attribute is read from the envs
        (a list, one value an env)
    """

    backend: type[Backend] = InProcess
    together = True

    config = settings(
        episode_num=setting(math.inf, 'int >= 1 | inf', 'episodes of each env until it is done'),
        auto_reset=setting(True, 'bool', 'begin the next episode at once; False: reset(reset_param) is called by hand'),
        max_retry=setting(1, 'int >= 0', 'restarts in a row without one good step that are borne'),
        retry_type=setting('reset', "'reset' | 'renew'", 'after a fault; renew: close the env and make another'),
        retry_waiting_time=setting(0.1, SECONDS, 'seconds between two tries'),
        step_timeout=setting(60, SECONDS, 'seconds for one step (needs a subprocess or thread manager)'),
        reset_timeout=setting(60, SECONDS, 'seconds for one reset'),
        connect_timeout=setting(60, SECONDS, 'seconds for making the envs'),
        wait_num=setting(2, 'int >= 1', 'async: a step answers as soon as so many envs have finished ...'),
        step_wait_timeout=setting(0.01, SECONDS, '... or so many seconds have passed and at least one has'),
        envs_per_worker=setting(1, 'int >= 1', 'envs that share one subprocess'),
        hybrid=setting(False, 'bool', 'sync: this process steps its share beside the children; see the class for when'),
        shared_memory=setting(True, 'bool', 'False: observations travel by pipe'),
        norm_obs=setting(False, 'bool', 'scale observations by their running mean and variance, over all envs'),
        norm_reward=setting(False, 'bool', 'scale rewards by the spread of the discounted return'),
        norm_clip=setting(10.0, 'number > 0', 'scaled values are cut to [-norm_clip, norm_clip]'),
        norm_discount=setting(0.99, 'number in [0, 1]', 'of the return whose spread scales rewards'),
        context=setting(
            None, "'fork' | 'forkserver' | 'spawn' | None", 'how subprocesses start; None: fork where it is safe'
        ),
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
        self._env_num = n = len(env_cfg)
        given = {key: value for key, value in (manager_cfg or {}).items() if key != 'type'}
        if episode_num is not None:
            given['episode_num'] = episode_num
        self._cfg = cfg = complete(type(self), given, 'env.manager', own_only=False)
        cfg['episode_num'] = float(cfg['episode_num'])  # of the word 'inf', too
        self.all_ids = np.arange(n, dtype=np.int64)
        self._setup = HostSetup(
            first_id=0,
            env_fn=env_fn,
            cfgs=[dict() if c is None else c for c in env_cfg],
            auto_reset=bool(cfg['auto_reset']) and (self.together or not self.backend.partial_steps),
            episode_num=cfg['episode_num'],
            seeds=[None] * n,
            reset_kwargs=[{}] * n,
            renewed=[0] * n,
        )
        self._replay_paths: list[str] | None = None
        self._env_info: Any = None
        self._live: Any = None  # what is Running, between launch() and close()
        self.normalizer: Normalizer | None = None  # what scales observations and rewards
        if cfg['norm_obs'] or cfg['norm_reward']:
            self.normalizer = Normalizer(cfg['norm_obs'], cfg['norm_reward'], cfg['norm_clip'], cfg['norm_discount'])
        self.faults = FaultLog(n, int(self._cfg['max_retry']), self._describe)

    # ------------------------------------------------------------------ the block form
    def observe(self) -> tuple[np.ndarray, Any]:
        """(ids in ascending order, block) of the envs that wait for an action. Do not write to it."""
        return (self._live or self._refuse('observe')).observe()

    def advance(self, ids: np.ndarray, actions: Any) -> StepBlock:
        """Step the envs ``ids`` with one row of ``actions`` each."""
        return (self._live or self._refuse('advance')).advance(ids, actions)

    @property
    def raw_observed(self) -> tuple[np.ndarray, Any] | None:
        """Where observations are scaled: what ``observe`` answered last, as the envs gave it."""
        return getattr(self._live, 'raw_observed', None)

    @property
    def raw_step(self) -> StepBlock | None:
        """Where observations or rewards are scaled: the last step as the envs gave it."""
        return getattr(self._live, 'raw_step', None)

    @property
    def asynchronous(self) -> bool:
        """Whether advance() may answer for other envs than those it was asked to step."""
        return not self.together

    @property
    def partial_steps(self) -> bool:
        """Whether some of the ready envs may be stepped without the others."""
        return self.backend.partial_steps

    def present_obs(self, ids: Sequence[int]) -> Any:
        """The observations of these envs, stacked; waits while their episodes begin."""
        return (self._live or self._refuse('present_obs')).present_obs(ids)

    def checked_ids(self, ids: Iterable[Any]) -> np.ndarray:
        """The same ids as an array; raises for what is none."""
        return np.array([check_id(i, self._env_num) for i in ids], np.int64)

    # ------------------------------------------------------------------ the documented form
    @property
    def ready_obs(self) -> RowMap:
        """env_id -> observation (tensors, copied) of the envs that wait for an action."""
        ids, obs = (self._live or self._refuse('ready_obs')).observe()
        return RowMap(ids, as_tensor(obs))

    next_obs = ready_obs

    def step(self, actions: Mapping[int, Any] | Any) -> TimestepMap:
        """
        Overview:
            Step envs.
        Arguments:
            - actions (:obj:`Mapping`): env_id -> action; or the stacked actions of all ready envs, in their order
        Returns:
            - timesteps (:obj:`TimestepMap`): env_id -> BaseEnvTimestep; an env that had to be restarted answers with
              its new first observation, reward 0 and ``info['abnormal'] = True``
        """
        return step_map(self if self._live else self._refuse('step'), actions)

    def _say_that_no_timeout_holds(self) -> None:
        """A warning where somebody has set one."""
        usual = complete(type(self), {}, 'env.manager', own_only=False)
        keys = ('step_timeout', 'reset_timeout', 'connect_timeout')
        changed = [f'env.manager.{key}' for key in keys if self._cfg[key] != usual[key]]
        logger.log(
            logging.WARNING if changed else logging.INFO,
            '%s steps envs in this process: an env that hangs cannot be ended (%s), so no timeout holds for it; '
            'env_manager_type subprocess or async_subprocess can end it, thread can give it up',
            type(self).__name__,
            ', '.join(changed) or 'env.manager.step_timeout',
        )

    # ------------------------------------------------------------------ life
    def launch(self, reset_param: Any = None) -> None:
        """Make the envs and begin their first episodes."""
        if self._live is not None:
            raise EnvStateError('launch(): the envs are running already; close() first, or use reset()')
        setup, param = self._setup, self._reset_params(reset_param)
        setup.reset_kwargs, setup.renewed = [param.get(i, {}) for i in range(self._env_num)], [0] * self._env_num
        backend = self.backend(self._env_num, self._cfg, self.together)
        if not backend.interrupts:
            self._say_that_no_timeout_holds()
        groups = Groups(backend, self._cfg, self.together, setup, self.faults)
        wait = None if self.together else (int(self._cfg['wait_num']), float(self._cfg['step_wait_timeout']))
        live = Running(groups, wait) if self.normalizer is None else Scaled(groups, wait, self.normalizer)
        self._live = live
        try:
            live.launch()
            self._env_info, self.action_rows, self.reward_size = live.info, live.action_rows, live.reward_size
            if self._replay_paths is not None:
                self._call('enable_save_replay', [((p,), {}) for p in self._replay_paths])
                self._live.reset(self.all_ids.tolist())
        except BaseException:
            self.close()
            raise
        for name in ('observe', 'advance'):  # who steps the envs calls what does it, unless somebody has put in another
            if name not in vars(self) and getattr(type(self), name) is getattr(EnvManager, name):
                vars(self)[name] = getattr(self._live, name)

    def reset(self, reset_param: Any = None) -> None:
        """
        Overview:
            Begin new episodes and count episodes from 0 again.
        Arguments:
            - reset_param (:obj:`dict | list | None`): env_id -> keyword arguments for ``env.reset``: resets these envs;
              a list has one dict an env; None resets all. Kept for the automatic resets that follow.
        """
        live, param = self._live or self._refuse('reset'), self._reset_params(reset_param)
        for i, kwargs in param.items():
            self._setup.reset_kwargs[i] = kwargs
        live.reset(sorted(param) if isinstance(reset_param, Mapping) else self.all_ids.tolist())

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
            seeds = {check_id(i, self._env_num): int(s) for i, s in seed.items()}
        elif isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
            seeds = {i: int(seed) + i for i in range(self._env_num)}
        elif isinstance(seed, (Sequence, np.ndarray)) and not isinstance(seed, str):
            if len(seed) != self._env_num:
                raise ValueError(f'seed: {self._env_num} envs need {self._env_num} seeds, got {len(seed)}')
            seeds = {i: int(s) for i, s in enumerate(seed)}
        else:
            raise TypeError(f'seed must be an int, a list or a dict env_id -> seed, got {seed!r}')
        for i, s in seeds.items():
            self._setup.seeds[i] = s, dynamic_seed
        if self._live is not None:
            self._live.seed(seeds, dynamic_seed)

    def close(self) -> None:
        """End the envs and free everything; may be called twice."""
        for name in ('observe', 'advance'):
            if self._live is not None and vars(self).get(name) == getattr(self._live, name):
                del vars(self)[name]
        live, self._live = self._live, None
        for fault in live.close() if live is not None else ():
            self.faults.record(fault)

    def __enter__(self) -> 'EnvManager':
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    # ------------------------------------------------------------------ saving
    def state_dict(self) -> dict[str, Any] | None:
        """
        Overview:
            The envs in the middle of their episodes, their observations and their running sums, for an exact resume.
            Envs without a plain ``state_dict`` are pickled and signed: those of other users are refused. None where
            that cannot be: envs that wait in the middle of a step (asynchronous managers), or are native code.
        """
        live = self._live or self._refuse('state_dict')
        if not live.at_rest:
            return None
        leaves = tree.leaves(live.store.obs[live.groups.slot])
        if any(leaf.dtype == object for leaf in leaves):
            return None
        try:
            saved = live.ask('save', self.all_ids.tolist(), lambda ids: (ids,))
        except WorkerLost:  # the next step tells that its envs were restarted
            return None
        if any(env is None for env in saved):
            return None
        state = {
            'envs': [torch.frombuffer(bytearray(env), dtype=torch.uint8) for env in saved],
            'obs': [torch.from_numpy(np.ascontiguousarray(leaf).view(np.uint8).copy()) for leaf in leaves],
        }
        return state if self.normalizer is None else self._live.state_of(state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave, into launched envs of the same kind and number."""
        live = self._live or self._refuse('load_state_dict')
        if self.normalizer is not None:
            state = self._live.load(state)
        if len(state['envs']) != self._env_num:
            raise ValueError(f'the saved state has {len(state["envs"])} envs, this manager {self._env_num}')
        saved = [env.numpy().tobytes() for env in state['envs']]
        live.ask('load', self.all_ids.tolist(), lambda ids: (ids, [saved[i] for i in ids]))
        live.put_back([leaf.numpy() for leaf in state['obs']])

    # ------------------------------------------------------------------ what is asked about
    @property
    def env_num(self) -> int:
        """The number of envs."""
        return self._env_num

    @property
    def ready_env(self) -> list[int]:
        """Ids of the envs that wait for an action."""
        return [] if self._live is None else np.flatnonzero(self._live.groups.ready).tolist()

    @property
    def active_env(self) -> list[int]:
        """Ids of the envs that still have episodes to play."""
        return [i for i, s in self.env_states.items() if s not in (EnvState.VOID, EnvState.DONE, EnvState.ERROR)]

    @property
    def done(self) -> bool:
        """Whether every env has played its ``episode_num`` episodes; never, if that is inf."""
        return all(s is EnvState.DONE for s in self.env_states.values())

    @property
    def closed(self) -> bool:
        """True before ``launch`` and after ``close``."""
        return self._live is None

    @property
    def env_states(self) -> dict[int, EnvState]:
        """env_id -> EnvState."""
        return dict(enumerate([EnvState.VOID] * self._env_num if self._live is None else self._live.groups.states))

    def env_info(self) -> Any:
        """The description (``env.info()``) of the envs; before ``launch`` one env is made and closed to ask it."""
        if self._env_info is None:
            self._env_info = self.backend.info(self._setup.env_fn, self._setup.cfgs)
        return self._env_info

    def enable_save_replay(self, replay_path: str | Sequence[str]) -> None:
        """Save videos of the following episodes; one path for all envs, or one each."""
        paths = [replay_path] * self._env_num if isinstance(replay_path, str) else list(replay_path)
        if len(paths) != self._env_num:
            raise ValueError(f'enable_save_replay: {self._env_num} envs need {self._env_num} paths, got {len(paths)}')
        self._replay_paths = paths
        if self._live is not None:
            self._call('enable_save_replay', [((p,), {}) for p in paths])

    def __getattr__(self, name: str) -> Any:
        """An attribute of the envs: a list of values, or (for a method) a function that answers such a list."""
        if name.startswith('_') or self.__dict__.get('_live') is None:
            raise AttributeError(f'{type(self).__name__} has no attribute {name!r} (those of the envs need launch())')
        values = self._call(name, None)
        if not any(isinstance(v, str) and v == METHOD for v in values):
            return values
        return lambda *args, **kwargs: self._call(name, [(args, kwargs)] * self._env_num)

    def __repr__(self) -> str:
        state = 'closed' if self.closed else f'{len(self.ready_env)} of {self._env_num} ready'
        made_by = getattr(self._setup.env_fn, '__name__', self._setup.env_fn)
        return f'{type(self).__name__}({made_by} x {self._env_num}, {state})'

    def _call(self, name: str, calls: list[tuple[tuple, dict]] | None) -> list[Any]:
        """Read an attribute (calls None) or call a method of each env."""
        args = lambda ids: (ids, name, None if calls is None else [calls[i] for i in ids])  # noqa: E731
        return (self._live or self._refuse(name)).ask('call', self.all_ids.tolist(), args)

    # ------------------------------------------------------------------ inside
    def _describe(self, env_id: int) -> str:
        return f'env_fn: {self._setup.env_fn!r}\nconfig of env {env_id}: {dict(self._setup.cfgs[env_id])}'

    def _refuse(self, what: str) -> Any:
        raise EnvStateError(f'{what}: the envs are not running; call launch() first')

    def _reset_params(self, param: Any) -> dict[int, dict]:
        if param is None:
            return {}
        if isinstance(param, Mapping):
            return {check_id(i, self._env_num): dict(kwargs or {}) for i, kwargs in param.items()}
        if isinstance(param, Sequence) and len(param) == self._env_num:
            return {i: dict(kwargs or {}) for i, kwargs in enumerate(param)}
        raise ValueError(f'reset_param: a dict env_id -> keyword arguments, or {self._env_num} dicts; got {param!r}')

    @classmethod
    def default_config(cls) -> dict:
        """The settings of this kind of manager, with those that it inherits."""
        return declared_config(cls)
