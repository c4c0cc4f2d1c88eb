"""PettingZooEnv: a PettingZoo parallel env as one BaseEnv whose rows are agents."""

import importlib
from typing import Any

import numpy as np

from nervex.envs.common import EnvElementInfo
from nervex.envs.env.base_env import BaseEnv, BaseEnvInfo, BaseEnvTimestep
from nervex.envs.spaces import ActionCodec, ObsCodec, choices_info, reward_info
from nervex.utils.declare import setting, settings
from nervex.utils.errors import ExtraMissingError


class PettingZooEnv(BaseEnv):
    """
    Overview:
        ``env_type='pettingzoo', env_id='mpe2.simple_spread_v3'``, a module with
        ``parallel_env``. The agents' observations are stacked; agents that see less than others are padded with zeros.
        An agent that has left the game sees zeros, gets reward 0, and its action is ignored. The episode ends when all
        have left.
    Shapes:
        - observation: ``{'agent_state': (A, D), 'agent_alive': (A, )}``; ``'global_state': (S, )`` if the env has one
        - action: :math:`(A, )` ints, or :math:`(A, k)` floats
        - reward: :math:`(1, )`, or :math:`(A, )` with ``team_reward=False``
    """

    config = settings(
        env_id=setting(None, 'str | None', "module path, e.g. 'mpe2.simple_spread_v3'"),
        env_fn=setting(None, 'callable | None', 'instead of an id: makes the parallel env, without arguments'),
        make_kwargs=setting({}, 'dict', "passed on to parallel_env, e.g. {'N': 3, 'max_cycles': 25}"),
        team_reward=setting(True, 'bool', 'the mean over agents as one reward; False: one reward an agent'),
        use_act_scale=setting(False, 'bool', 'the policy speaks [-1, 1]'),
        use_global_state=setting(True, 'bool', 'False: leave state() out'),
    )

    def __init__(self, cfg: Any = None) -> None:
        env = None
        if cfg is not None and not isinstance(cfg, dict):
            env, cfg = cfg, None
        super().__init__(cfg)
        self._env: Any = env
        self._given = env is not None
        self._seeded, self._running = False, False
        self._codecs: dict[str, tuple[ActionCodec, ObsCodec]] = {}

    # ------------------------------------------------------------------ the BaseEnv interface
    def reset(self, *, seed: int | None = None, **kwargs: Any) -> dict[str, np.ndarray]:
        """Begin an episode; answers the first observation in the form of ``info()``."""
        self._build()
        if seed is not None:
            self.seed(seed, self._dynamic_seed)
        if self._seed is not None and not (self._seeded and self._dynamic_seed):
            kwargs['seed'] = self._seed
        answer = self._env.reset(**kwargs)
        obs = answer[0] if isinstance(answer, tuple) else answer
        self._seeded, self._running, self._return = True, True, 0.0
        return self._stacked(obs)

    def step(self, action: Any) -> BaseEnvTimestep:
        """One step of the env inside, in the forms of ``info()``."""
        if not self._running:
            raise RuntimeError(f'{self!r}: call reset() before step(), and after the end of an episode')
        actions = {a: self._codecs[a][0].to_env(action[k]) for k, a in enumerate(self._agents) if a in self._env.agents}
        obs, rewards, terminations, truncations, infos = self._env.step(actions)
        each = np.array([float(rewards.get(a, 0.0)) for a in self._agents], np.float32)
        self._return += float(each.mean())
        reward = np.array([each.mean()], np.float32) if self._cfg.team_reward else each
        done = not self._env.agents or all(terminations.get(a, True) or truncations.get(a, True) for a in self._agents)
        info: dict[str, Any] = {a: infos[a] for a in infos if infos[a]}
        if done:
            self._running = False
            info['final_eval_reward'] = self._return
            info['truncated'] = any(truncations.values()) and not any(terminations.values())
        return BaseEnvTimestep(self._stacked(obs), reward, bool(done), info)

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        """Seed the env's own generator, see BaseEnv."""
        super().seed(seed, dynamic_seed)
        self._seeded = False

    def info(self) -> BaseEnvInfo:
        """The spaces; works before the first reset."""
        self._build()
        count = len(self._agents)
        shapes: dict[str, Any] = {'agent_state': (count, *self._shape), 'agent_alive': (count,)}
        values: dict[str, Any] = {'agent_state': reward_info(dtype=self._dtype).value}
        values['agent_alive'] = reward_info(0, 1).value
        if self._has_state:
            shapes['global_state'], values['global_state'] = tuple(self._env.state_space.shape), reward_info().value
        rewards = (1,) if self._cfg.team_reward else (count,)
        return BaseEnvInfo(count, EnvElementInfo(shapes, values), self._act_info, reward_info(shape=rewards))

    def close(self) -> None:
        """Free what is held; may be called twice."""
        if self._env is not None:
            self._env.close()
            if not self._given:
                self._env = None
        self._running = False

    def __repr__(self) -> str:
        return f'PettingZooEnv({self._cfg.env_id or self._env or "env_fn"})'

    # ------------------------------------------------------------------ building
    def _build(self) -> None:
        if self._codecs and self._env is not None:
            return
        if self._env is None:
            self._env = self._cfg.env_fn() if self._cfg.env_fn is not None else self._make()
        self._agents = list(self._env.possible_agents)
        env, scaled = self._env, self._cfg.use_act_scale
        self._codecs = {
            a: (ActionCodec(env.action_space(a), scaled), ObsCodec(env.observation_space(a))) for a in self._agents
        }
        self._describe()

    def _describe(self) -> None:
        """One shape for all agents: of the one that sees most; one action space, of the one that can do most."""
        seen = [obs.info for _, obs in self._codecs.values()]
        if any(isinstance(info.shape, dict) for info in seen) or len({len(info.shape) for info in seen}) != 1:
            raise TypeError(f'{self!r}: agents must see arrays of as many axes; write a BaseEnv for this one')
        self._shape = tuple(int(n) for n in np.max([info.shape for info in seen], axis=0))
        self._dtype = np.result_type(*(info.value['dtype'] for info in seen)).type
        self._has_state = self._cfg.use_global_state and getattr(self._env, 'state_space', None) is not None
        acts = [act.info for act, _ in self._codecs.values()]
        kinds = {info.value['kind'] for info in acts}
        count = len(acts)
        if kinds == {'discrete'}:
            self._act_info = choices_info(tuple(int(info.value['n']) for info in acts))
        elif kinds == {'continuous'} and len({info.shape for info in acts}) == 1:
            self._act_info = EnvElementInfo((count, *acts[0].shape), acts[0].value)
        else:
            raise TypeError(f'{self!r}: agents must all act by Discrete, or all by Box of one shape; write a BaseEnv')

    def _make(self) -> Any:
        if self._cfg.env_id is None:
            raise ValueError("PettingZooEnv needs env.env_id, e.g. env_id='mpe2.simple_spread_v3', or env.env_fn")
        try:
            module = importlib.import_module(self._cfg.env_id)
        except ImportError as error:
            raise ExtraMissingError(
                f"env '{self._cfg.env_id}' cannot be imported ({error}): pip install nervex[pettingzoo], and the "
                f'package that has the env; its version number may have moved on'
            ) from error
        return module.parallel_env(**self._cfg.make_kwargs)

    def _stacked(self, obs: dict) -> dict[str, np.ndarray]:
        state = np.zeros((len(self._agents), *self._shape), self._dtype)
        alive = np.zeros(len(self._agents), np.float32)
        for k, agent in enumerate(self._agents):
            if agent in obs:
                row = self._codecs[agent][1](obs[agent])
                state[k][tuple(slice(n) for n in row.shape)] = row
                alive[k] = agent in self._env.agents
        found = {'agent_state': state, 'agent_alive': alive}
        if self._has_state:
            found['global_state'] = np.asarray(self._env.state(), np.float32)
        return found
