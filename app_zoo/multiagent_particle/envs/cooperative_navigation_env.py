"""CooperativeNavigationEnv: :class:`Navigation` as an env, for one team or for many at once."""

from __future__ import annotations

import numpy as np

from app_zoo.multiagent_particle.envs.navigation import DT, RADIUS, Navigation
from nervex.envs import ArrayEnv, BaseEnvInfo, EnvElementInfo
from nervex.utils.declare import setting, settings

TEAM_REWARDS = ('sum', 'mean', 'each')


class CooperativeNavigationEnv(ArrayEnv):
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
        limit_ends=setting(False, 'bool', 'the limit belongs to the task: what is learned ends there, too'),
        continuous=setting(False, 'bool', 'pushes in [-1, 1] along both axes instead of five directions'),
        local_ratio=setting(0.5, 'number in [0, 1]', "weight of an agent's own collisions beside the team's distances"),
        team_reward=setting('sum', "'sum' | 'mean' | 'each'", 'over the agents'),
        observe_alone=setting(False, 'bool', 'also what an agent would see alone, for CollaQ'),
        observe_positions=setting(False, 'bool', 'also where the agents are, for groups by distance (ATOC)'),
    )
    render_fps = round(1 / DT)

    def __init__(self, cfg: dict | None = None, num: int = 1) -> None:
        super().__init__(cfg, num)
        if self._cfg.team_reward not in TEAM_REWARDS:
            raise ValueError(f'team_reward: one of {TEAM_REWARDS}, got {self._cfg.team_reward!r}')
        self.world, self.limit = Navigation(num, self._cfg.agent_num, self._cfg.local_ratio), self._cfg.episode_limit
        self.limit_ends = self._cfg.limit_ends
        self._never = np.zeros(num, bool)

    def begin(self, which: np.ndarray, generators: list[np.random.Generator]) -> None:
        self.world.reset(which, generators)

    def act(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        each, kind = self.world.step(self._checked(actions)).astype(np.float32), self._cfg.team_reward
        return each if kind == 'each' else each.sum(1) if kind == 'sum' else each.mean(1), self._never

    def seen(self) -> dict[str, np.ndarray]:
        num, team, state = self.num, self.world.agents, self.world.obs()
        seen = {'agent_state': state, 'global_state': state.reshape(num, -1).copy()}
        if not self._cfg.continuous:
            seen['action_mask'] = np.ones((num, team, 5), np.float32)
        if self._cfg.observe_alone:
            alone = state[..., : 4 + 2 * team].copy()
            seen['agent_alone_state'] = alone
            behind = state.shape[2] - alone.shape[2]
            seen['agent_alone_padding_state'] = np.pad(alone, ((0, 0), (0, 0), (0, behind)))
        if self._cfg.observe_positions:
            seen['agent_position'] = self.world.place.astype(np.float32)
        return seen

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

    def _checked(self, actions: np.ndarray) -> np.ndarray:
        """The actions as the world takes them; ValueError names what is wrong with them."""
        num, team = self.num, self.world.agents
        if self._cfg.continuous:
            if actions.shape != (num, team, 2) or not np.isfinite(actions).all():
                raise ValueError(f'{self!r}: an action is {team} x 2 finite floats; got {actions.tolist()}')
            return np.clip(actions.astype(np.float64), -1.0, 1.0)
        if actions.shape != (num, team) or actions.dtype.kind not in 'iu':
            raise ValueError(f'{self!r}: an action is {team} ints from 0 to 4, one an agent; got {actions.tolist()}')
        if (wrong := (actions < 0) | (actions > 4)).any():
            env, agent = np.argwhere(wrong)[0].tolist()
            raise ValueError(
                f'{self!r}: agent {agent}{self.of_row(env)} takes action {actions[env, agent]}; '
                f'an action is {team} ints from 0 to 4, one an agent'
            )
        return actions
