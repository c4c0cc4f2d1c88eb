"""SMAXEnv: the battles of JaxMARL's SMAX, compiled once, under SMAC's interface."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from app_zoo.smac.envs.adapters import BattleAdapter
from nervex.utils.declare import setting, settings
from nervex.utils.errors import ExtraMissingError, unknown_name

MOST = 20.0  # a perfect episode's return, as SMAC has it; SMAX's own is 2, and won_battle_bonus is one of these


class SMAXEnv(BattleAdapter):
    """
    Overview:
        ``-c smac_3m_mappo -o env.env_type=smax`` (extra ``smax``): marines and others against SMAX's own heuristic.
        Actions are four moves, stop (also of the dead), and an attack on each enemy. Envs of one process share what was
        compiled; rewards are ten times SMAX's, so that a perfect episode is worth 20 as in SMAC.
    """

    config = settings(make_kwargs=setting({}, 'dict', "further arguments of SMAX, e.g. {'max_steps': 60}"))

    def _make(self, seed: int | None) -> Any:
        given = tuple(sorted(self._cfg.make_kwargs.items()))
        return SMAXBattle(
            _compiled(self._cfg.map_name, given), np.random.SeedSequence().entropy if seed is None else seed
        )

    def _alive(self) -> Sequence[bool]:
        return self._battle.alive


class SMAXBattle:
    """One battle: the state and the key of SMAX here, what it shows of itself as NumPy arrays."""

    def __init__(self, functions: Any, seed: int) -> None:
        import jax

        self._begin, self._advance, self._sizes = functions
        self._key = jax.random.PRNGKey(seed % 2**32)
        self._state: Any = None
        self._shown: dict[str, np.ndarray] = {}

    def get_env_info(self) -> dict[str, int]:
        """Sizes by SMAC's names."""
        return dict(self._sizes)

    def reset(self) -> None:
        """Begin a battle."""
        self._key, self._state, shown = self._begin(self._key)
        self._show(shown)

    def step(self, actions: list[int]) -> tuple[float, bool, dict[str, Any]]:
        """One step: reward, whether the battle is over, and how it stands."""
        self._key, self._state, shown = self._advance(self._key, self._state, np.array(actions, np.int32))
        self._show(shown)
        health, allies = self._shown['health'], self._sizes['n_agents']
        stand, foes = self.alive.sum(), (health[allies:] > 0).sum()
        said = {
            'battle_won': bool(foes == 0 and stand > 0),  # if the last ones fall together nobody has won
            'dead_allies': int(allies - stand),
            'dead_enemies': int(len(health) - allies - foes),
        }
        over = bool(self._shown['done'])
        if over and foes and stand:
            said['episode_limit'] = True
        return float(self._shown['reward']) * MOST / 2, over, said

    @property
    def alive(self) -> np.ndarray:
        """Which allies still stand."""
        return self._shown['health'][: self._sizes['n_agents']] > 0

    def get_obs(self) -> np.ndarray:
        """What each ally sees."""
        return self._shown['obs']

    def get_state(self) -> np.ndarray:
        """Everything."""
        return self._shown['world']

    def get_avail_actions(self) -> np.ndarray:
        """Which actions each ally may take."""
        return self._shown['mask']

    def close(self) -> None:
        """Forget the battle."""
        self._state = None

    def _show(self, shown: dict[str, Any]) -> None:
        self._shown = {name: np.asarray(part) for name, part in shown.items()}


@functools.lru_cache(maxsize=8)
def _compiled(map_name: str, given: tuple) -> tuple[Any, Any, dict[str, int]]:
    """Begin and step of a battle on this map as two compiled functions, and its sizes by SMAC's names."""
    try:
        import jax
        import jax.numpy as jnp
        from jaxmarl import make
        from jaxmarl.environments.smax import map_name_to_scenario
        from jaxmarl.environments.smax.smax_env import MAP_NAME_TO_SCENARIO
    except ImportError as error:
        raise ExtraMissingError(f'env_type \'smax\' needs JaxMARL ({error}): pip install "nervex[smax]"') from error
    if map_name not in MAP_NAME_TO_SCENARIO:
        raise ValueError(unknown_name('map of SMAX', map_name, MAP_NAME_TO_SCENARIO))
    env = make('HeuristicEnemySMAX', scenario=map_name_to_scenario(map_name), **dict(given))

    def shown(obs: dict, state: Any, reward: Any, done: Any) -> dict[str, Any]:
        mask = env.get_avail_actions(state)
        return {
            'obs': jnp.stack([obs[agent] for agent in env.agents]),
            'world': obs['world_state'],
            'mask': jnp.stack([mask[agent] for agent in env.agents]),
            'health': state.state.unit_health,
            'reward': reward,
            'done': done,
        }

    def strong(state: Any) -> Any:
        """Of the same types in and out: by a Python number among them all would be compiled a second time."""
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype), state)

    def begin(key: Any) -> tuple[Any, Any, dict[str, Any]]:
        key, now = jax.random.split(key)
        obs, state = env.reset(now)
        return key, strong(state), shown(obs, state, jnp.float32(0), jnp.bool_(False))

    def advance(key: Any, state: Any, actions: Any) -> tuple[Any, Any, dict[str, Any]]:
        key, now = jax.random.split(key)
        # not step(), which begins the next episode by itself and shows that one
        obs, state, rewards, dones, _ = env.step_env(now, state, {a: actions[k] for k, a in enumerate(env.agents)})
        return key, strong(state), shown(obs, state, rewards[env.agents[0]], dones['__all__'])

    sizes = {
        'n_agents': len(env.agents),
        'n_actions': int(env.action_space(env.agents[0]).n),
        'obs_shape': int(env.obs_size),
        'state_shape': int(env.state_size),
        'episode_limit': int(env.max_steps),
    }
    return jax.jit(begin), jax.jit(advance), sizes
