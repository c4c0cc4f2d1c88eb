"""Other simulators of the same battles, under the observations, actions and settings of SMACEnv."""

from __future__ import annotations

import importlib
import sys
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from app_zoo.smac.envs.smac_env import OBSERVE_ALIVE
from nervex.envs import BaseEnv, BaseEnvInfo, BaseEnvTimestep, EnvElementInfo
from nervex.utils.declare import setting, settings
from nervex.utils.errors import ExtraMissingError


class BattleAdapter(BaseEnv):
    """
    Overview:
        An object under SMAC's interface (``reset``, ``step``, ``get_obs``, ``get_state``, ``get_avail_actions``,
        ``get_env_info``, ``close``) as an env of nerveX. A subclass makes it. It is made anew for another seed, and the
        episodes behind the first go on with its own generator.
    Shapes:
        - as SMACEnv
    """

    config = settings(
        map_name=setting('3m', 'str', 'who fights whom'),
        make_kwargs=setting({}, 'dict', 'further arguments of the simulator'),
        observe_alive=OBSERVE_ALIVE,
    )

    def __init__(self, cfg: dict | None = None) -> None:
        super().__init__(cfg)
        self._battle: Any = None
        self._made_with: int | None = None
        self._over = True
        self.battle_won = False

    @abstractmethod
    def _make(self, seed: int | None) -> Any:
        """The simulator, seeded."""

    @abstractmethod
    def _alive(self) -> Sequence[bool]:
        """Which allies still stand."""

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> dict[str, np.ndarray]:
        if seed is not None:
            self.seed(seed, self._dynamic_seed)
        if self._battle is not None and (self._seed != self._made_with or not self._dynamic_seed):
            self.close()
        self._launch().reset()
        self._steps, self._return = 0, 0.0
        self._over = self.battle_won = False
        return self._seen()

    def step(self, action: Any) -> BaseEnvTimestep:
        if self._over:
            raise RuntimeError(f'{self!r}: call reset() before step(), and after the end of an episode')
        reward, over, said = self._battle.step(self._checked(action))
        if over and 'battle_won' not in said:
            raise RuntimeError(f'{self!r}: the simulator broke off; this episode is dropped, another one may begin')
        self._steps += 1
        self._return += float(reward)
        self._over, self.battle_won = bool(over), bool(said.get('battle_won', False))
        info: dict[str, Any] = {}
        if self._over:
            counts = {name: int(said[name]) for name in ('dead_allies', 'dead_enemies') if name in said}
            cut = bool(said.get('episode_limit', False))
            info = {'final_eval_reward': self._return, 'truncated': cut, 'battle_won': self.battle_won, **counts}
        return BaseEnvTimestep(self._seen(), np.array([reward], np.float32), self._over, info)

    def info(self) -> BaseEnvInfo:
        sizes = self._launch().get_env_info()
        team, actions = int(sizes['n_agents']), int(sizes['n_actions'])
        shapes = {
            'agent_state': (team, int(sizes['obs_shape'])),
            'global_state': (int(sizes['state_shape']),),
            'action_mask': (team, actions),
        }
        number = {'min': -np.inf, 'max': np.inf, 'dtype': np.float32, 'kind': 'continuous'}
        flags = {'action_mask': {**number, 'min': 0, 'max': 1}}
        if self._cfg.observe_alive:
            shapes['agent_alive'], flags['agent_alive'] = (team,), flags['action_mask']
        obs = EnvElementInfo(shapes, {**dict.fromkeys(shapes, number), **flags})
        choice = {'min': 0, 'max': (actions - 1,) * team, 'dtype': np.int64, 'kind': 'multi_discrete'}
        act = EnvElementInfo((team,), {**choice, 'n': (actions,) * team})
        return BaseEnvInfo(team, obs, act, EnvElementInfo((1,), number))

    def close(self) -> None:
        """End the simulator; may be called twice."""
        battle, self._battle = self._battle, None
        self._over = True
        if battle is not None:
            battle.close()

    def state_dict(self) -> dict[str, Any]:
        """NotImplementedError: a simulator cannot be saved in the middle of a battle."""
        raise NotImplementedError(f'{self!r}: the simulator has no state that could be saved')

    __getstate__ = state_dict

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self._cfg.map_name})'

    def _launch(self) -> Any:
        if self._battle is None:
            self._battle, self._made_with = self._make(self._seed), self._seed
        return self._battle

    def _seen(self) -> dict[str, np.ndarray]:
        self._mask = np.array(self._battle.get_avail_actions(), np.float32)
        if not self._over and not self._mask.any(1).all():
            unit = int(np.flatnonzero(~self._mask.any(1))[0])
            raise ValueError(f'{self!r}: unit {unit} has no legal action: its row of get_avail_actions() is all zeros')
        alive = {'agent_alive': np.array(self._alive(), np.float32)} if self._cfg.observe_alive else {}
        return {
            'agent_state': np.array(self._battle.get_obs(), np.float32),
            'global_state': np.array(self._battle.get_state(), np.float32),
            'action_mask': self._mask.copy(),
            **alive,
        }

    def _checked(self, action: Any) -> list[int]:
        actions, team = np.asarray(action).reshape(-1), len(self._mask)
        if actions.shape != (team,) or actions.dtype.kind not in 'iu':
            raise ValueError(f'{self!r}: an action is {team} ints, one a unit; got {action!r}')
        for unit, chosen in enumerate(actions.tolist()):
            if not 0 <= chosen < self._mask.shape[1] or not self._mask[unit, chosen]:
                legal = np.flatnonzero(self._mask[unit]).tolist()
                raise ValueError(f'{self!r}: unit {unit} may not take action {chosen}; legal are {legal}')
        return actions.tolist()


class StarCraftEnv(BattleAdapter):
    """
    Overview:
        SMAC itself, on StarCraft II: ``-c smac_3m_mappo -o env.env_type=smac_starcraft``. Each env is a game of its
        own; ``env.env_manager_type=async_subprocess`` plays them at once. The limit of a map's steps is no defeat.
    """

    config = settings(make_kwargs=setting({}, 'dict', 'further arguments of StarCraft2Env'))

    def _make(self, seed: int | None) -> Any:
        try:
            kind = importlib.import_module('smac.env').StarCraft2Env
        except ImportError as error:
            other = 'smac' in sys.modules
            found = 'what is installed as smac is another project, which tunes hyperparameters' if other else str(error)
            raise ExtraMissingError(
                f"env_type 'smac_starcraft': {found}; it needs SMAC from its own repository (oxwhirl/smac), StarCraft "
                "II and SMAC's maps, none of which is an extra; env_type 'smac' plays such battles in NumPy"
            ) from error
        given = {**self._cfg.make_kwargs, 'map_name': self._cfg.map_name, 'seed': seed}
        return kind(**given, continuing_episode=True)  # which only makes it tell that the limit ended a battle

    def _alive(self) -> Sequence[bool]:
        return [self._battle.get_unit_by_id(unit).health > 0 for unit in range(len(self._mask))]
