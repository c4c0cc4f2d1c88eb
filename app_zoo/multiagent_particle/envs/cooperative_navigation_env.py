"""CooperativeNavigationEnv: one team of :class:`Navigation` as a BaseEnv."""

from __future__ import annotations

from typing import Any

import numpy as np

from app_zoo.multiagent_particle.envs.navigation import DT, RADIUS, Navigation
from nervex.envs import BaseEnv, BaseEnvInfo, BaseEnvTimestep, EnvElementInfo
from nervex.utils.declare import setting, settings

TEAM_REWARDS = ('sum', 'mean', 'each')


class CooperativeNavigationEnv(BaseEnv):
    """
    Overview:
        N agents cover N landmarks; MPE's ``simple_spread`` without its Python loops, equal to it number for number.
    Shapes:
        - observation: ``agent_state`` :math:`(N, d)`, ``global_state`` :math:`(N d, )`, ``action_mask``
          :math:`(N, 5)`; with ``observe_alone`` also ``agent_alone_state`` :math:`(N, 4 + 2N)`, which leaves out the
          comrades, and the same padded with zeros to ``d`` as ``agent_alone_padding_state``; with
          ``observe_positions`` also ``agent_position`` :math:`(N, 2)`
        - action: :math:`(N, )` ints (stay, left, right, down, up), or :math:`(N, 2)` floats with ``continuous``
        - reward: :math:`(1, )`, or :math:`(N, )` with ``team_reward='each'``
    """

    config = settings(
        agent_num=setting(3, 'int >= 1', 'agents, and landmarks'),
        episode_limit=setting(25, 'int >= 1', 'steps of an episode'),
        continuous=setting(False, 'bool', 'pushes in [-1, 1] along both axes instead of five directions'),
        local_ratio=setting(0.5, 'number in [0, 1]', "weight of an agent's own collisions beside the team's distances"),
        team_reward=setting('sum', "'sum' | 'mean' | 'each'", 'over the agents'),
        observe_alone=setting(False, 'bool', 'also what an agent would see alone, for CollaQ'),
        observe_positions=setting(False, 'bool', 'also where the agents are, for groups by distance (ATOC)'),
    )
    render_fps = round(1 / DT)

    def __init__(self, cfg: dict | None = None) -> None:
        super().__init__(cfg)
        if self._cfg.team_reward not in TEAM_REWARDS:
            raise ValueError(f'team_reward: one of {TEAM_REWARDS}, got {self._cfg.team_reward!r}')
        self.world = Navigation(1, self._cfg.agent_num, self._cfg.local_ratio)
        self._over = True

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> dict[str, np.ndarray]:
        self.world.reset(np.arange(1), [self.episode_rng(seed)])
        self._steps, self._return, self._over = 0, 0.0, False
        return self._seen()

    def step(self, action: Any) -> BaseEnvTimestep:
        if self._over:
            raise RuntimeError(f'{self!r}: call reset() before step(), and after the end of an episode')
        each = self.world.step(self._checked(action)[None])[0].astype(np.float32)
        kind = self._cfg.team_reward
        reward = each if kind == 'each' else np.array([each.sum() if kind == 'sum' else each.mean()], np.float32)
        self._return += float(reward.mean() if kind == 'each' else reward[0])
        self._steps += 1
        self._over = self._steps >= self._cfg.episode_limit
        info = {'final_eval_reward': self._return, 'truncated': True} if self._over else {}
        return BaseEnvTimestep(self._seen(), reward, self._over, info)

    def info(self) -> BaseEnvInfo:
        team, size = self.world.agents, self.world.obs_dim
        value = {'min': -np.inf, 'max': np.inf, 'dtype': np.float32, 'kind': 'continuous'}
        shapes = {'agent_state': (team, size), 'global_state': (team * size,), 'action_mask': (team, 5)}
        if self._cfg.continuous:
            del shapes['action_mask']
            act = EnvElementInfo((team, 2), {**value, 'min': -1.0, 'max': 1.0})
        else:
            kind = {'min': 0, 'max': (4,) * team, 'dtype': np.int64, 'kind': 'multi_discrete', 'n': (5,) * team}
            act = EnvElementInfo((team,), kind)
        if self._cfg.observe_alone:
            shapes['agent_alone_state'] = (team, 4 + 2 * team)
            shapes['agent_alone_padding_state'] = (team, size)
        if self._cfg.observe_positions:
            shapes['agent_position'] = (team, 2)
        rewards = (team,) if self._cfg.team_reward == 'each' else (1,)
        obs = EnvElementInfo(shapes, dict.fromkeys(shapes, value))
        return BaseEnvInfo(team, obs, act, EnvElementInfo(rewards, {**value, 'max': 0.0}))

    def render(self) -> np.ndarray:
        """The field from -1.5 to 1.5 with landmarks (dark) and agents (blue): uint8, 400 x 400 x 3."""
        size, reach = 400, 1.5
        image = np.full((size, size, 3), 245, np.uint8)
        down, right = np.mgrid[:size, :size]
        x, y = (right / size * 2 - 1) * reach, (1 - down / size * 2) * reach
        for places, radius, colour in (
            (self.world.marks[0], 0.05, (60, 60, 60)),
            (self.world.place[0], RADIUS, (90, 110, 220)),
        ):
            for place in places:
                inside = (x - place[0]) ** 2 + (y - place[1]) ** 2 <= radius**2
                image[inside] = image[inside] // 3 + np.array(colour, np.uint8) // 3 * 2
        return image

    def __repr__(self) -> str:
        return f'CooperativeNavigationEnv(agents={self.world.agents}, limit={self._cfg.episode_limit})'

    def _seen(self) -> dict[str, np.ndarray]:
        state = self.world.obs()[0]
        seen = {'agent_state': state, 'global_state': state.reshape(-1).copy()}
        if not self._cfg.continuous:
            seen['action_mask'] = np.ones((self.world.agents, 5), np.float32)
        if self._cfg.observe_alone:
            alone = state[:, : 4 + 2 * self.world.agents].copy()
            seen['agent_alone_state'] = alone
            seen['agent_alone_padding_state'] = np.pad(alone, ((0, 0), (0, state.shape[1] - alone.shape[1])))
        if self._cfg.observe_positions:
            seen['agent_position'] = self.world.place[0].astype(np.float32)
        return seen

    def _checked(self, action: Any) -> np.ndarray:
        """The action as the world takes it; ValueError names what is wrong with it."""
        team, given = self.world.agents, np.asarray(action)
        if self._cfg.continuous:
            if given.shape != (team, 2) or not np.isfinite(given).all():
                raise ValueError(f'{self!r}: an action is {team} x 2 finite floats; got {action!r}')
            return np.clip(given.astype(np.float64), -1.0, 1.0)
        given = given.reshape(-1)
        if given.shape != (team,) or given.dtype.kind not in 'iu' or given.min() < 0 or given.max() > 4:
            raise ValueError(f'{self!r}: an action is {team} ints from 0 to 4, one an agent; got {action!r}')
        return given
