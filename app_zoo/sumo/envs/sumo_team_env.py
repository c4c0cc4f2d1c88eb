"""SumoTeamEnv: the crossings of a net as a team, each an agent with what it sees and a reward of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from app_zoo.sumo.envs.nets import Net, road_of
from app_zoo.sumo.envs.sumo_env import SumoEnv, check_installed
from nervex.envs import BaseEnvInfo, EnvElementInfo
from nervex.envs.common.team import padded
from nervex.utils.declare import settings


class SumoTeamEnv(SumoEnv):
    """
    Overview:
        SumoEnv whose crossings are agents. Each sees itself and, by the side on which they are, the crossings from
        which a road leads to it, lanes in the order of the sides from which they come, so that all can share one
        network; its reward is that of its own lanes. A phase that has lasted ``longest_s`` cannot be chosen again.
    Shapes:
        - agent_state: :math:`(A, (1 + S) d)`: what SumoEnv tells of the crossing and of its neighbour on each of the S
          sides on which any crossing has one, 0 where it has none
        - global_state: what SumoEnv tells, one crossing after the other; action_mask: :math:`(A, P)`
        - action: :math:`(A, )`, a phase each; reward: :math:`(A, )`
    """

    config = settings()  # SumoEnv's

    def __init__(self, cfg: dict | None = None) -> None:
        super().__init__(cfg)
        self._order = [self._by_side(k) for k in range(len(self._crossings))]
        sides = neighbours(self.net)
        used = sorted({side for each in sides for side in each})
        self._around = [[each.get(side) for side in used] for each in sides]

    def info(self) -> BaseEnvInfo:
        check_installed()
        agents, sizes, most = len(self._phases), self._sizes(), max(self._phases)
        shapes = {
            'agent_state': (agents, max(sizes) * (1 + len(self._around[0]))),
            'global_state': (sum(sizes),),
            'action_mask': (agents, most),
        }
        seen = {'min': 0.0, 'max': float('inf'), 'dtype': np.float32, 'kind': 'continuous'}
        act = {'min': 0, 'max': most - 1, 'dtype': np.int64, 'kind': 'multi_discrete', 'n': (most,) * agents}
        reward = {'min': -float('inf'), 'max': 0.0, 'dtype': np.float32, 'kind': 'continuous'}
        return BaseEnvInfo(
            agents,
            EnvElementInfo(shapes, dict.fromkeys(shapes, seen)),
            EnvElementInfo((agents,), act),
            EnvElementInfo((agents,), reward),
        )

    def __repr__(self) -> str:
        return f'SumoTeamEnv(net={self._cfg.net!r})'

    def _by_side(self, k: int) -> np.ndarray:
        """Where in what is seen of a crossing the numbers stand: those of its lights, then its lanes by their sides."""
        lanes, lights, cells = self._crossings[k].lanes, self._phases[k] + 1, 3 * self._cfg.cells
        sides = {lane: side_of(self.net.shape[lane][0] - self.net.shape[lane][-1]) for lane in lanes}
        ordered = sorted(range(len(lanes)), key=lambda place: (sides[lanes[place]], lanes[place]))
        return np.concatenate([np.arange(lights), *(lights + cells * place + np.arange(cells) for place in ordered)])

    def _rewarded(self, rewards: np.ndarray) -> np.ndarray:
        return rewards.astype(np.float32)

    def _seen(self) -> dict[str, np.ndarray]:
        each = self._seen_by_each()
        rows = padded([seen[order] for seen, order in zip(each, self._order)])
        nobody = np.zeros_like(rows[0])
        states = [
            np.concatenate([rows[k], *(nobody if other is None else rows[other] for other in around)])
            for k, around in enumerate(self._around)
        ]
        mask = padded([np.ones(phases, np.float32) for phases in self._phases])
        longest: Any = self._cfg.longest_s
        for k, lasted in enumerate(self._lasted):
            if longest is not None and lasted >= longest:
                mask[k, self._phase[k]] = 0
        whole = {'agent_state': np.stack(states), 'global_state': np.concatenate(each).astype(np.float32)}
        return {**whole, 'action_mask': mask}


def side_of(there: np.ndarray) -> int:
    """On which side a place is, by how far it is to the east and to the north: 0 east, 1 north, 2 west, 3 south."""
    return round(np.arctan2(there[1], there[0]) / (np.pi / 2)) % 4


def neighbours(net: Net) -> list[dict[int, int]]:
    """Of each crossing: side -> the nearest crossing there from which a road, in one piece or several, leads to it."""
    middles = [np.mean([net.shape[lane][-1] for lane in crossing.lanes], axis=0) for crossing in net.crossings]
    leaving = [{road_of(lane) for lane in crossing.leaving} for crossing in net.crossings]
    found = []
    for this, (crossing, here) in enumerate(zip(net.crossings, middles)):
        coming = net.pieces(crossing.roads)
        others = [k for k, roads in enumerate(leaving) if roads & coming and k != this]
        others.sort(key=lambda k: -float(np.linalg.norm(middles[k] - here)))
        found.append({side_of(middles[k] - here): k for k in others})
    return found
