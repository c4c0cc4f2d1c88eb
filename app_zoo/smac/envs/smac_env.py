"""SMACEnv: a team of units against scripted ones, as an env (one or many at once) and under SMAC's interface."""

from __future__ import annotations

import numpy as np

from app_zoo.smac.envs.battle import TICK_S, TICKS, Battles
from app_zoo.smac.envs.picture import draw
from app_zoo.smac.envs.units import MAPS
from app_zoo.smac.envs.view import View
from nervex.envs import ArrayEnv, BaseEnvInfo, EnvElementInfo
from nervex.utils.declare import setting, settings
from nervex.utils.errors import unknown_name

OBSERVE_ALIVE = setting(False, 'bool', 'also who still stands (agent_alive), so that losses pass over the others')


class SMACEnv(ArrayEnv):
    """
    Overview:
        One micro-battle. The team shares a reward: damage to enemies, 10 for each that falls and 200 for the victory,
        scaled to 20 for a perfect episode. The dead may only do nothing (action 0); the living never.
    Shapes:
        - observation: ``agent_state`` :math:`(A, d)`, ``global_state`` :math:`(s, )`, ``action_mask`` :math:`(A, n)`;
          with ``observe_alone`` also ``agent_alone_state``, which leaves out the comrades, and the same with zeros in
          their place as ``agent_alone_padding_state`` :math:`(A, d)`; with
          ``observe_alive`` ``agent_alive`` :math:`(A, )`, 1 for who still stands
        - action: :math:`(A, )` ints: 0 nothing, 1 stop, 2 to 5 north, south, east, west, then a target each
    Interfaces:
        reset, step, seed, info, render, get_obs, get_state, get_avail_actions, get_env_info
    """

    config = settings(
        map_name=setting('3m', ' | '.join(map(repr, MAPS)), 'who fights whom'),
        episode_limit=setting(None, 'int >= 1 | None', 'steps of an episode; None: what SMAC has for the map'),
        observe_alone=setting(False, 'bool', 'also what a unit would see without comrades, for CollaQ'),
        observe_alive=OBSERVE_ALIVE,
    )
    state_constants = ('view',)
    render_fps = round(1 / (TICK_S * TICKS))

    def __init__(self, cfg: dict | None = None, num: int = 1) -> None:
        super().__init__(cfg, num)
        name = self._cfg.map_name
        if name not in MAPS:
            raise ValueError(unknown_name('map of the micro-battle', name, MAPS))
        self.battles = Battles(MAPS[name], num)
        self.view = View(self.battles)
        self.limit = int(self._cfg.episode_limit or MAPS[name].limit)
        self._last = np.full((num, self.battles.allies), -1)
        self._mask = self.battles.available()
        self._won = np.zeros(num, bool)

    # ------------------------------------------------------------------ the ArrayEnv interface
    def begin(self, which: np.ndarray, generators: list[np.random.Generator]) -> None:
        self.battles.reset(which, generators)
        self._won[which], self._last[which] = False, -1

    def act(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        outcome = self.battles.step(self._checked(actions))
        self._last[:], self._won = actions, outcome.won
        return self.view.reward(outcome), outcome.won | outcome.lost

    def seen(self) -> dict[str, np.ndarray]:
        self._mask = self.battles.available()
        seen = {
            'agent_state': self.view.obs(self._mask),
            'global_state': self.view.state(self._last),
            'action_mask': self._mask.astype(np.float32),
        }
        if self._cfg.observe_alive:
            seen['agent_alive'] = self.battles.alive[:, : self.battles.allies].astype(np.float32)
        if self._cfg.observe_alone:
            seen['agent_alone_state'] = np.delete(seen['agent_state'], self.view.comrades, 2)
            padded = seen['agent_alone_padding_state'] = seen['agent_state'].copy()
            padded[..., self.view.comrades] = 0.0
        return seen

    def last_info(self) -> dict[str, np.ndarray]:
        """``win``, and what SMAC calls it, with the dead of both sides."""
        dead = ~self.battles.alive
        allies, enemies = dead[:, : self.battles.allies].sum(1), dead[:, self.battles.allies :].sum(1)
        return {'win': self._won, 'battle_won': self._won, 'dead_allies': allies, 'dead_enemies': enemies}

    def info(self) -> BaseEnvInfo:
        team, actions = self.battles.allies, self.battles.action_num
        unit = {'min': -1.0, 'max': 1.0, 'dtype': np.float32, 'kind': 'continuous'}
        flag = {'min': 0.0, 'max': 1.0, 'dtype': np.float32, 'kind': 'continuous'}
        shapes = {
            'agent_state': (team, self.view.obs_dim),
            'global_state': (self.view.state_dim,),
            'action_mask': (team, actions),
        }
        if self._cfg.observe_alone:
            comrades = self.view.comrades.stop - self.view.comrades.start
            shapes['agent_alone_state'] = (team, self.view.obs_dim - comrades)
            shapes['agent_alone_padding_state'] = shapes['agent_state']
        flags = {'action_mask': flag}
        if self._cfg.observe_alive:
            shapes['agent_alive'], flags['agent_alive'] = (team,), flag
        obs = EnvElementInfo(shapes, {**dict.fromkeys(shapes, unit), **flags})
        value = {'min': 0, 'max': (actions - 1,) * team, 'dtype': np.int64, 'kind': 'multi_discrete'}
        act = EnvElementInfo((team,), {**value, 'n': (actions,) * team})
        rew = EnvElementInfo((1,), {'min': 0.0, 'max': 20.0, 'dtype': np.float32, 'kind': 'continuous'})
        return BaseEnvInfo(team, obs, act, rew)

    def render(self) -> np.ndarray:
        """The battle as it stands: uint8, height x width x 3."""
        return draw(self.battles)

    def __repr__(self) -> str:
        return f'SMACEnv({self._cfg.map_name}, limit={self.limit})'

    # ------------------------------------------------------------------ SMAC's own names
    @property
    def battle_won(self) -> bool:
        """Whether the last step won the battle."""
        return bool(self._won[0])

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
            'episode_limit': self.limit,
        }

    # ------------------------------------------------------------------ inside
    def _checked(self, actions: np.ndarray) -> np.ndarray:
        team, count = self.battles.allies, self.battles.action_num
        if actions.shape != (self.num, team) or actions.dtype.kind not in 'iu':
            raise ValueError(f'{self!r}: an action is {team} ints, one a unit; got {actions.tolist()}')
        chosen = np.clip(actions, 0, count - 1)
        legal = np.take_along_axis(self._mask, chosen[..., None], 2)[..., 0] & (chosen == actions)
        if not legal.all():
            env, unit = np.argwhere(~legal)[0].tolist()
            may = np.flatnonzero(self._mask[env, unit]).tolist()
            raise ValueError(
                f'{self!r}: unit {unit}{self.of_row(env)} may not take action {actions[env, unit]}; legal are {may}'
            )
        return actions
