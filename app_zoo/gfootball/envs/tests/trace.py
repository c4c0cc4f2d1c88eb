"""
Episodes of the real engine in a file, and an engine that plays them again. Recorded, where gfootball is, by

    python -m app_zoo.gfootball.envs.tests.trace

with what gfootball's own wrappers make of each observation beside it.
"""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import numpy as np

from app_zoo.gfootball.envs.bots import attacker
from app_zoo.gfootball.envs.engine import Engine
from nervex.entry.cli import told_in_one_message

#: scenario, controlled players, seed
TRACES = {'one': ('academy_empty_goal_close', 1, 0), 'team': ('academy_3_vs_1_with_keeper', 3, 1)}
_LISTS = ('left_agent_controlled_player', 'score')  # numbers and lists of numbers are such again in a replay
_NUMBERS = ('game_mode', 'ball_owned_team', 'ball_owned_player', 'steps_left')


def path_of(name: str) -> Path:
    return Path(__file__).parent / f'trace_{name}.npz'


class Replay:
    """``Engine`` that goes through a recorded episode, whatever it is told; ``told`` keeps that."""

    def __init__(self, scenario: str, controlled: int, render: Any = None) -> None:
        (name,) = (name for name, (which, players, _) in TRACES.items() if (which, players) == (scenario, controlled))
        with np.load(path_of(name)) as archive:
            self.held = {key: archive[key] for key in archive.files}
        self.told: list[list[int]] = []

    @staticmethod
    def check(scenario: str) -> None:
        """Every scenario is there."""

    def reset(self, rng: np.random.Generator) -> dict[str, Any]:
        self.told = []
        return self._raw()

    def step(self, actions: list[int]) -> tuple[dict[str, Any], int, bool]:
        self.told.append(actions)
        now = len(self.told)
        return self._raw(), int(self.held['scored'][now - 1]), now == len(self.held['scored'])

    def close(self) -> None:
        """Nothing is held."""

    def _raw(self) -> dict[str, Any]:
        raw = {key[4:]: value[len(self.told)].copy() for key, value in self.held.items() if key.startswith('raw.')}
        return {k: v.tolist() if k in _LISTS else int(v) if k in _NUMBERS else v for k, v in raw.items()}


def record(scenario: str, controlled: int, seed: int) -> dict[str, np.ndarray]:
    """An episode by the scripted player."""
    Engine.check(scenario)
    from gfootball.env.observation_preprocessing import generate_smm
    from gfootball.env.wrappers import CheckpointRewardWrapper, Simple115StateWrapper

    engine, now = Engine(scenario, controlled), types.SimpleNamespace()
    now.unwrapped = types.SimpleNamespace(observation=lambda: now.seen)
    checkpoints = CheckpointRewardWrapper(now)
    engine, now = Engine(scenario, controlled), types.SimpleNamespace()
    now.unwrapped = types.SimpleNamespace(observation=lambda: now.seen)
    checkpoints = CheckpointRewardWrapper(now)
    raws: list[dict[str, Any]] = []
    vectors, maps, actions, scored, shaped = [], [], [], [], []

    def see(raw: dict[str, Any]) -> None:
        raws.append(raw)
        now.seen = [{**raw, 'active': player} for player in raw['left_agent_controlled_player']]
        vectors.append(Simple115StateWrapper.convert_observation(now.seen, True))
        maps.append(generate_smm(now.seen))

    see(engine.reset(np.random.default_rng(seed)))
    over = False
    while not over:
        actions.append([attacker(raws[-1], player) for player in raws[-1]['left_agent_controlled_player']])
        raw, score, over = engine.step(actions[-1])
        see(raw)
        scored.append(score)
        shaped.append(checkpoints.reward(np.full(controlled, score, np.float32)))
    engine.close()
    columns = {f'raw.{name}': np.array([raw[name] for raw in raws]) for name in raws[0]}
    kept = dict(vectors=vectors, maps=maps, actions=actions, scored=scored, shaped=shaped)
    return {**columns, **{name: np.array(part) for name, part in kept.items()}}


@told_in_one_message()
def main() -> None:
    for name, (scenario, controlled, seed) in TRACES.items():
        columns = record(scenario, controlled, seed)
        np.savez_compressed(path_of(name), **columns)
        print(path_of(name), len(columns['actions']), 'steps, goals', columns['scored'].sum())


if __name__ == '__main__':
    main()
