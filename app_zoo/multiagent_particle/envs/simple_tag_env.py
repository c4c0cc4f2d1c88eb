"""SimpleTagEnv: slow hunters learn to catch quicker prey that flees by rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from nervex.envs import BaseEnvTimestep, PettingZooEnv
from nervex.utils.declare import setting, settings

_RIM = 0.8  # where the prey begins to turn back; MPE punishes it from 0.9 on
_TURN = 40.0  # and how much it wants to: from 0.825 on more than to flee


class SimpleTagEnv(PettingZooEnv):
    """
    Overview:
        MPE's ``simple_tag`` with the hunters (its adversaries) as the team: 10 for each of them whenever one touches
        prey. The prey runs from the hunters, the near ones above all, and back from the rim of the field.
    Shapes:
        - as PettingZooEnv says; a hunter has 5 actions, and sees speed, place, obstacles and the others
    """

    config = settings(
        agent_num=setting(3, 'int >= 1', 'hunters'),
        prey_num=setting(1, 'int >= 1', 'whom they hunt'),
        obstacle_num=setting(2, 'int >= 0', 'in the way of both'),
        episode_limit=setting(25, 'int >= 1', 'steps of an episode'),
        continuous=setting(False, 'bool', 'pushes in [0, 1] along five directions instead of a choice between them'),
        shaping=setting(0.0, 'number >= 0', "a hunter's loss in a step, per distance to the nearest prey; in no score"),
        prey=setting('flees', "'flees' | 'random'", 'how it acts'),
        team=['adversary'],
        team_reward='mean',
        env_id='mpe2.simple_tag_v3',
    )

    def __init__(self, cfg: dict | None = None) -> None:
        super().__init__(cfg)
        given = self._cfg
        if given.prey == 'flees' and (partly := [name for name in given.make_kwargs if name.endswith('_neighbors')]):
            raise ValueError(f"env.make_kwargs: {partly[0]} hides hunters from prey that flees; take env.prey='random'")
        given.make_kwargs = dict(
            num_adversaries=given.agent_num,
            num_good=given.prey_num,
            num_obstacles=given.obstacle_num,
            max_cycles=given.episode_limit,
            continuous_actions=given.continuous,
            **given.make_kwargs,
        )

    def step(self, action: Any) -> BaseEnvTimestep:
        """One step; with ``shaping`` near hunters lose less, while ``final_eval_reward`` counts touches alone."""
        timestep = super().step(action)
        if not self._cfg.shaping:
            return timestep
        places = np.array([agent.state.p_pos for agent in self._env.unwrapped.world.agents])
        hunters, prey = places[: self._cfg.agent_num], places[self._cfg.agent_num :]
        loss = self._cfg.shaping * np.sqrt(((hunters[:, None] - prey) ** 2).sum(-1)).min(1).astype(np.float32)
        kind = self._cfg.team_reward
        return timestep._replace(
            reward=timestep.reward - (loss if kind == 'each' else loss.mean() if kind == 'mean' else loss.sum())
        )

    def _act_of(self, agent: str, obs: Any) -> Any:
        if self._cfg.prey == 'random':
            return super()._act_of(agent, obs)
        first = 4 + 2 * self._cfg.obstacle_num
        hunters = obs[first : first + 2 * self._cfg.agent_num].reshape(-1, 2).astype(np.float64)
        place = obs[2:4].astype(np.float64)
        away = -(hunters / np.maximum((hunters**2).sum(1, keepdims=True), 1e-4)).sum(0)
        beyond = np.sign(place) * np.maximum(np.abs(place) - _RIM, 0.0)
        away = away / max(float(np.abs(away).max()), 1e-9) - _TURN * beyond
        axis = int(np.abs(away).argmax())
        chosen = 1 + 2 * axis + int(away[axis] > 0)  # left, right, down, up
        return np.eye(5, dtype=np.float32)[chosen] if self._cfg.continuous else chosen
