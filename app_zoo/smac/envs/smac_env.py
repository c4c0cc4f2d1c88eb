"""SMACEnv: a team of units against scripted ones, under SMAC's interface and as a BaseEnv."""

from __future__ import annotations

from typing import Any

import numpy as np

from app_zoo.smac.envs.battle import TICK_S, TICKS, Battles
from app_zoo.smac.envs.picture import draw
from app_zoo.smac.envs.units import MAPS
from app_zoo.smac.envs.view import View
from nervex.envs import BaseEnv, BaseEnvInfo, BaseEnvTimestep, EnvElementInfo
from nervex.utils.declare import setting, settings
from nervex.utils.errors import unknown_name


class SMACEnv(BaseEnv):
    """
    Overview:
        One micro-battle. The team shares a reward: damage to enemies, 10 for each that falls and 200 for the victory,
        scaled to 20 for a perfect episode. The dead may only do nothing (action 0); the living never.
    Shapes:
        - observation: ``agent_state`` :math:`(A, d)`, ``global_state`` :math:`(s, )`, ``action_mask`` :math:`(A, n)`
        - action: :math:`(A, )` ints: 0 nothing, 1 stop, 2 to 5 north, south, east, west, then a target each
    Interfaces:
        reset, step, seed, info, render, get_obs, get_state, get_avail_actions, get_env_info
    """

    config = settings(
        map_name=setting('3m', ' | '.join(map(repr, MAPS)), 'who fights whom'),
        episode_limit=setting(None, 'int >= 1 | None', 'steps of an episode; None: what SMAC has for the map'),
    )
    state_constants = ('view',)
    render_fps = round(1 / (TICK_S * TICKS))

    def __init__(self, cfg: dict | None = None) -> None:
        super().__init__(cfg)
        name = self._cfg.map_name
        if name not in MAPS:
            raise ValueError(unknown_name('map of the micro-battle', name, MAPS))
        self.battles = Battles(MAPS[name], 1)
        self.view = View(self.battles)
        self._limit = int(self._cfg.episode_limit or MAPS[name].limit)
        self._over = True
        self._last = np.full((1, self.battles.allies), -1)
        self._mask = self.battles.available()
        self.battle_won = False

    # ------------------------------------------------------------------ the BaseEnv interface
    def reset(self, *, seed: int | None = None, **kwargs: Any) -> dict[str, np.ndarray]:
        self.battles.reset(np.arange(1), [self.episode_rng(seed)])
        self._steps, self._return = 0, 0.0
        self._over = self.battle_won = False
        self._last[:] = -1
        return self._seen()

    def step(self, action: Any) -> BaseEnvTimestep:
        if self._over:
            raise RuntimeError(f'{self!r}: call reset() before step(), and after the end of an episode')
        actions = self._checked(action)
        outcome = self.battles.step(actions)
        self._last[:] = actions
        self._steps += 1
        reward = self.view.reward(outcome)
        self._return += float(reward[0])
        self.battle_won = bool(outcome.won[0])
        ended = self.battle_won or bool(outcome.lost[0])
        self._over = ended or self._steps >= self._limit
        info: dict[str, Any] = {}
        if self._over:
            stand = self.battles.alive[0]
            info = {
                'final_eval_reward': self._return,
                'truncated': not ended,
                'battle_won': self.battle_won,
                'dead_allies': int((~stand[: self.battles.allies]).sum()),
                'dead_enemies': int((~stand[self.battles.allies :]).sum()),
            }
        return BaseEnvTimestep(self._seen(), reward, self._over, info)

    def info(self) -> BaseEnvInfo:
        team, actions = self.battles.allies, self.battles.action_num
        unit = {'min': -1.0, 'max': 1.0, 'dtype': np.float32, 'kind': 'continuous'}
        flag = {'min': 0.0, 'max': 1.0, 'dtype': np.float32, 'kind': 'continuous'}
        shapes = {
            'agent_state': (team, self.view.obs_dim),
            'global_state': (self.view.state_dim,),
            'action_mask': (team, actions),
        }
        obs = EnvElementInfo(shapes, {'agent_state': unit, 'global_state': unit, 'action_mask': flag})
        value = {'min': 0, 'max': (actions - 1,) * team, 'dtype': np.int64, 'kind': 'multi_discrete'}
        act = EnvElementInfo((team,), {**value, 'n': (actions,) * team})
        rew = EnvElementInfo((1,), {'min': 0.0, 'max': 20.0, 'dtype': np.float32, 'kind': 'continuous'})
        return BaseEnvInfo(team, obs, act, rew)

    def render(self) -> np.ndarray:
        """The battle as it stands: uint8, height x width x 3."""
        return draw(self.battles)

    def __repr__(self) -> str:
        return f'SMACEnv({self._cfg.map_name}, limit={self._limit})'

    # ------------------------------------------------------------------ SMAC's own names
    def get_obs(self) -> list[np.ndarray]:
        """What each ally sees."""
        return list(self.view.obs(self._mask)[0])

    def get_state(self) -> np.ndarray:
        """Everything, for a central critic or mixer."""
        return self.view.state(self._last)[0]

    def get_avail_actions(self) -> list[list[int]]:
        """Which actions each ally may take, as 0 and 1."""
        return self._mask[0].astype(int).tolist()

    def get_env_info(self) -> dict[str, int]:
        """Sizes by SMAC's names."""
        return {
            'n_actions': self.battles.action_num,
            'n_agents': self.battles.allies,
            'state_shape': self.view.state_dim,
            'obs_shape': self.view.obs_dim,
            'episode_limit': self._limit,
        }

    # ------------------------------------------------------------------ inside
    def _seen(self) -> dict[str, np.ndarray]:
        self._mask = self.battles.available()
        return {
            'agent_state': self.view.obs(self._mask)[0],
            'global_state': self.view.state(self._last)[0],
            'action_mask': self._mask[0].astype(np.float32),
        }

    def _checked(self, action: Any) -> np.ndarray:
        team, count = self.battles.allies, self.battles.action_num
        actions = np.asarray(action).reshape(-1)
        if actions.shape != (team,) or actions.dtype.kind not in 'iu':
            raise ValueError(f'{self!r}: an action is {team} ints, one a unit; got {action!r}')
        for unit, chosen in enumerate(actions.tolist()):
            if not 0 <= chosen < count or not self._mask[0, unit, chosen]:
                legal = np.flatnonzero(self._mask[0, unit]).tolist()
                raise ValueError(f'{self!r}: unit {unit} may not take action {chosen}; legal are {legal}')
        return actions[None]
