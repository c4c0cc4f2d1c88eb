"""Envs that are vectorised already, behind one small interface: Gymnasium's vector envs, ALE's, EnvPool."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from nervex.envs.common import agent_num
from nervex.envs.env.base_env import BaseEnvInfo
from nervex.envs.spaces import ActionCodec, ObsCodec, reward_info, space_kind
from nervex.utils import tree
from nervex.utils.errors import ConfigError, ExtraMissingError, UnknownNameError, nearest, unknown_name

BACKENDS = ('auto', 'gymnasium', 'ale', 'envpool')
# what an id of ALE says of the game, and not of the picture
_OF_GAMES = ('repeat_action_probability', 'full_action_space', 'frameskip', 'max_num_frames_per_episode')


class Answer(NamedTuple):
    """
    Overview:
        One step; ``final_obs`` has the last observations of envs that the engine has reset already, and
        ``infos['final_info']`` their last infos, if it tells them.
    """

    obs: Any
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    infos: dict
    final_obs: Any = None


class GymnasiumEngine:
    """
    Overview:
        A ``gymnasium.vector.VectorEnv``, ALE's included.
    Arguments:
        - env (:obj:`Any`): the vector env; its ``metadata['autoreset_mode']`` is NEXT_STEP or SAME_STEP
        - use_act_scale, one_hot, flatten (:obj:`bool`): as in GymEnv
        - rules (:obj:`Any`): told by ``begin()`` that all episodes begin; ``acted(actions, ids)`` and
          ``answered(answer, ids)`` change what goes to these envs and comes from them. None: nothing changes
    """

    def __init__(
        self,
        env: Any,
        use_act_scale: bool = False,
        one_hot: bool = True,
        flatten: bool = False,
        rules: Any = None,
    ) -> None:
        mode = str(getattr(env.metadata.get('autoreset_mode'), 'value', 'NextStep'))
        if mode not in ('NextStep', 'SameStep'):
            raise ValueError(f'{env}: autoreset mode {mode} is not supported, make it with NEXT_STEP or SAME_STEP')
        self.env, self.num, self.rules = env, env.num_envs, rules
        self.same_step = mode == 'SameStep'
        self.act = ActionCodec(env.single_action_space, use_act_scale)
        self.obs = ObsCodec(env.single_observation_space, one_hot, flatten)
        self._is_box = space_kind(env.single_observation_space) == 'Box'

    def info(self) -> BaseEnvInfo:
        """The description of one env."""
        return BaseEnvInfo(agent_num(self.obs.info), self.obs.info, self.act.info, reward_info())

    def start(self, seeds: list[int | None]) -> Any:
        """Begin episodes; answers the first observations."""
        self._all_begin()
        return self._observed(self.env.reset(seed=self._seed(seeds))[0])

    def exchange(self, actions: np.ndarray) -> Answer:
        """One action for each env."""
        everyone = np.arange(self.num)
        obs, reward, terminated, truncated, infos = self.env.step(self._acted(actions, everyone))
        ended, cut = np.asarray(terminated, bool), np.asarray(truncated, bool)
        final = infos.pop('final_obs', None) if self.same_step else None
        answer = Answer(self._observed(obs), np.asarray(reward, np.float32), ended, cut, infos, final)
        return answer if self.rules is None else self.rules.answered(answer, everyone)

    def final_row(self, final_obs: Any, k: int) -> Any:
        """The last observation of row k."""
        if isinstance(final_obs, dict):
            return self.obs({key: part[k] for key, part in final_obs.items()})
        return self.obs(final_obs[k])

    def ask(self, name: str, call: tuple[tuple, dict] | None) -> list[Any]:
        """An attribute of each env, or the answers of a method."""
        if not hasattr(self.env, 'call'):
            raise AttributeError(f'{self.env} has no single envs to ask for {name!r}')
        args, kwargs = call or ((), {})
        return list(self.env.call(name, *args, **kwargs))

    def close(self) -> None:
        """Free what is held; may be called twice."""
        self.env.close()

    def _observed(self, obs: Any) -> Any:
        if self.obs.plain or (isinstance(obs, np.ndarray) and self._is_box):
            return np.asarray(obs, self.obs.info.value['dtype']).reshape(len(obs), *self.obs.info.shape)
        from gymnasium.vector.utils import iterate

        return _stack([self.obs(row) for row in iterate(self.env.observation_space, obs)])

    def _all_begin(self) -> None:
        if self.rules is not None:
            self.rules.begin()

    def _acted(self, actions: np.ndarray, ids: np.ndarray) -> Any:
        if self.rules is not None:
            actions = self.rules.acted(actions, ids)
        if self.act.plain:
            return actions
        rows = [self.act.to_env(a) for a in actions]
        return tuple(np.array(p) for p in zip(*rows)) if isinstance(rows[0], tuple) else np.stack(rows)

    def _seed(self, seeds: list[int | None]) -> Any:
        first = _first_of(seeds)
        if first is None or hasattr(self.env, 'env_fns'):  # it has single envs
            return None if first is None else list(seeds)
        if type(self.env).__name__ == 'AtariVectorEnv' and None not in seeds:
            return np.array(seeds)
        return first  # of a generator that all share


class EnvPoolEngine(GymnasiumEngine):
    """
    Overview:
        EnvPool; its seeds are fixed when it is made, so a start with other seeds makes it again. With a ``batch_size``
        below the number of envs it takes actions and answers apart (``send``, ``recv``), for some envs at a time.
    """

    def __init__(self, task_id: str, num: int, kwargs: dict, rules: Any = None, **codec: bool) -> None:
        self._task, self._codec, self.env, self.rules = task_id, codec, None, rules
        size = kwargs.get('batch_size', num)
        if not isinstance(size, int) or size < 1 or (size < num and num % size):
            text = f'got {size!r}, must be a number that divides the number of envs, {num}'
            raise ConfigError([f'env.vector_kwargs.batch_size: {text}'])
        self.num, self.same_step, self.batch_size = num, False, min(size, num)
        self._kwargs, self._seeds = {**kwargs, 'batch_size': self.batch_size}, None  # type: dict, Any
        self._make(None)

    def _make(self, seed: int | None) -> None:
        try:
            import envpool
        except ImportError as error:
            text = 'env.vector_backend envpool: it is not installed: pip install "nervex[envpool]"'
            raise ExtraMissingError(text) from error
        if self._task not in (known := envpool.list_all_envs()):
            near = nearest(self._task, known)
            hint = f"; did you mean '{near}'?" if near else ''
            raise UnknownNameError(f"EnvPool has no env '{self._task}'{hint}")
        self.close()
        seeded = {} if seed is None else {'seed': seed}
        self.env = envpool.make(self._task, env_type='gymnasium', num_envs=self.num, **seeded, **self._kwargs)
        self.act = ActionCodec(self.env.action_space, self._codec.get('use_act_scale', False))
        one_hot, flatten = self._codec.get('one_hot', True), self._codec.get('flatten', False)
        self.obs, space = ObsCodec(self.env.observation_space, one_hot, flatten), self.env.observation_space
        self._is_box = space_kind(space) == 'Box'
        boxes = not flatten and space_kind(space) == 'Dict' and all(space_kind(s) == 'Box' for s in space.values())
        self._boxes = boxes  # nothing but their kinds of numbers is to be changed

    def start(self, seeds: list[int | None]) -> Any:
        """Begin episodes; the envs are made again if there are seeds, or if some may be in the middle of a step."""
        seed = _first_of(seeds)
        if seed is not None:
            self._seeds = np.random.default_rng(seed)
        elif self._seeds is not None and self.batch_size < self.num:
            seed = int(self._seeds.integers(2**31 - self.num))
        if seed is not None or self.batch_size < self.num:
            self._make(seed)
        self._all_begin()
        if self.batch_size == self.num:
            return self._observed(self.env.reset()[0])
        self.env.async_reset()
        parts = [self.recv() for _ in range(self.num // self.batch_size)]
        order = np.argsort(np.concatenate([ids for ids, _ in parts]))
        return tree.index(tree.cat([answer.obs for _, answer in parts]), order)

    def send(self, actions: np.ndarray, ids: np.ndarray) -> None:
        """Give these envs an action each; does not wait."""
        self.env.send(self._acted(actions, ids), ids.astype(np.int32))

    def recv(self) -> tuple[np.ndarray, Answer]:
        """The ids of the first ``batch_size`` envs to answer, and their answers."""
        obs, reward, terminated, truncated, infos = self.env.recv()
        ids = np.array(infos.pop('env_id'))
        ended = np.asarray(terminated, bool), np.asarray(truncated, bool)
        answer = Answer(self._observed(obs), np.asarray(reward, np.float32), *ended, infos)
        return ids, answer if self.rules is None else self.rules.answered(answer, ids)

    def _observed(self, obs: Any) -> Any:
        if isinstance(obs, np.ndarray) and self._is_box:
            return super()._observed(obs)
        if isinstance(obs, dict) and self._boxes:
            return {k: np.asarray(v, np.float32 if v.dtype == np.float64 else v.dtype) for k, v in obs.items()}
        return _stack([self.obs(tree.index(obs, k)) for k in range(len(next(iter(tree.leaves(obs)))))])

    def close(self) -> None:
        """Free what is held; may be called twice."""
        if self.env is not None:
            self.env.close()
            self.env = None


def make_engine(cfg: dict, num: int, rules: Any = None) -> Any:
    """
    Overview:
        The engine for a GymEnv config.
    Arguments:
        - cfg (:obj:`dict`): complete settings of GymEnv; ``vector_backend`` chooses, ``vector_kwargs`` go to the engine
        - rules (:obj:`Any`): see GymnasiumEngine
    """
    from nervex.envs.gym_env import drawn

    backend, env_id = cfg['vector_backend'], cfg['env_id']
    if backend not in BACKENDS:
        raise ValueError(unknown_name('vector_backend', backend, BACKENDS))
    if backend == 'auto':
        backend = 'ale' if (env_id or '').split(':')[-1].startswith('ALE/') else 'gymnasium'
    _check_that_it_plays(backend, cfg)
    codec = dict(use_act_scale=cfg['use_act_scale'], one_hot=cfg['one_hot_obs'], flatten=cfg['flatten_obs'])
    kwargs = {**drawn(cfg), **cfg['vector_kwargs']}
    limit = {} if cfg['max_episode_steps'] is None else {'max_episode_steps': cfg['max_episode_steps']}
    if backend == 'envpool':
        return EnvPoolEngine(env_id, num, {**limit, **kwargs}, rules, **codec)
    if backend == 'ale':
        return GymnasiumEngine(_make_ale(env_id, num, cfg['max_episode_steps'], kwargs), **codec, rules=rules)
    return GymnasiumEngine(_make_gymnasium(cfg, num, limit, kwargs), **codec, rules=rules)


def _check_that_it_plays(backend: str, cfg: dict) -> None:
    """ConfigError for settings of single envs that an engine has no use for."""
    names = ['package'] if backend == 'gymnasium' else ['wrappers', 'env_fn', 'package']
    usual: dict[str, Any] = {'wrappers': [], 'env_fn': None, 'package': 'gymnasium'}
    made = "by Gymnasium's own vector env" if backend == 'gymnasium' else f'by vector_backend {backend}, as a whole'
    text = f'which the envs of env_manager_type vector have not: they are made {made}; take base or subprocess'
    wrong = [f'env.{name}: got {cfg[name]!r}, {text}' for name in names if cfg[name] != usual[name]]
    if wrong:
        raise ConfigError(wrong)


def _first_of(seeds: list[int | None]) -> int | None:
    return next((int(seed) for seed in seeds if seed is not None), None)


def bare_name(env_id: str) -> str:
    """The game of an Atari id: 'Pong' of 'ALE/Pong-v5'."""
    return env_id.split('/')[-1].split('-')[0].removesuffix('NoFrameskip')


def _make_ale(env_id: str, num: int, limit: int | None, kwargs: dict) -> Any:
    try:
        from ale_py.vector_env import AtariVectorEnv
    except ImportError as error:
        raise ExtraMissingError(f"env '{env_id}': pip install nervex[atari]") from error
    from nervex.envs.gym_env import find_spec

    name = bare_name(env_id)
    game = ''.join('_' + c.lower() if c.isupper() and k else c.lower() for k, c in enumerate(name))
    game_of_id = {name: value for name, value in find_spec(env_id).kwargs.items() if name in _OF_GAMES}
    kwargs = {'autoreset_mode': 'SameStep', 'reward_clipping': False, **game_of_id, **kwargs}
    if limit is not None:
        kwargs['max_num_frames_per_episode'] = limit * kwargs.get('frameskip', 4)
    return AtariVectorEnv(game, num, **kwargs)


def _make_gymnasium(cfg: dict, num: int, limit: dict, kwargs: dict) -> Any:
    """The vector env that an id brings, or, for others and with wrappers, single envs as GymEnv makes them."""
    import gymnasium

    from nervex.envs.gym_env import GymEnv, find_spec

    spec = None if cfg['env_fn'] is not None or cfg['wrappers'] else find_spec(cfg['env_id'])
    if spec is not None and spec.vector_entry_point is not None:
        return gymnasium.make_vec(spec.id, num, vectorization_mode='vector_entry_point', **limit, **kwargs)
    one = {**cfg, 'make_kwargs': {} if cfg['env_fn'] is not None else kwargs}
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    return gymnasium.vector.SyncVectorEnv([lambda: GymEnv(dict(one)).limited()] * num, autoreset_mode=mode)


def _stack(rows: Iterable[Any]) -> Any:
    rows = list(rows)
    if isinstance(rows[0], dict):
        return {k: _stack([r[k] for r in rows]) for k in rows[0]}
    return np.stack(rows)
