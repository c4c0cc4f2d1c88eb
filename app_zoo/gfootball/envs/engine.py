"""The football engine behind four methods; the only place that knows the package gfootball."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from nervex.utils.errors import ConfigError, ExtraMissingError, unknown_name

ACTIONS = (
    *('idle', 'left', 'top_left', 'top', 'top_right', 'right', 'bottom_right', 'bottom', 'bottom_left'),
    *('long_pass', 'high_pass', 'short_pass', 'shot', 'sprint', 'release_direction', 'release_sprint', 'sliding'),
    *('dribble', 'release_dribble', 'builtin_ai'),
)


class Engine:
    """
    Overview:
        A game of the scenario, in which ``controlled`` players of the left team do what they are told. ``reset`` and
        ``step`` answer the raw observation, a dict of arrays and numbers in new objects.
    Arguments:
        - render (:obj:`tuple[int, int] | None`): width and height of the pictures that ``frame`` answers
    """

    def __init__(self, scenario: str, controlled: int, render: tuple[int, int] | None = None) -> None:
        from gfootball.env import config, football_env_core

        values = {
            'level': scenario,
            'players': [f'agent:left_players={controlled}'],
            'action_set': 'v2',
            **self._drawn(0, 0),
        }
        if render is not None:
            values |= {'render_resolution_x': render[0], 'render_resolution_y': render[1]}
        self._config = config.Config(values)
        self._core = football_env_core.FootballEnvCore(self._config)
        if render is not None:
            self._draw()

    @staticmethod
    def check(scenario: str) -> None:
        """ExtraMissingError if the package is not there, ConfigError if the scenario is not in it."""
        found = importlib.util.find_spec('gfootball')
        if found is None:
            raise ExtraMissingError(
                "the env gfootball needs the package 'gfootball', which pip install builds from source with the "
                'libraries that app_zoo/gfootball/install.sh brings first: run that script (Debian, Ubuntu)'
            )
        folder = Path(next(iter(found.submodule_search_locations or ()))) / 'scenarios'
        names = [path.stem for path in folder.glob('*.py') if not path.stem.startswith('_')]
        if scenario not in names:
            raise ConfigError([f'env.scenario: {unknown_name("scenario", scenario, sorted(names))}'])

    def _draw(self) -> None:
        try:
            self._core.render('rgb_array')
        except AssertionError as error:
            self.close()
            text = "the engine draws for one env a process, and this process has one; take 'subprocess'"
            raise ConfigError([f'env.env_manager_type: {text}']) from error

    @staticmethod
    def _drawn(seed: int, turn: int) -> dict[str, Any]:
        """All that an episode is made from: the engine's seed, who is moved first, and who has the kick-off."""
        return {
            'game_engine_random_seed': seed,
            'reverse_team_processing': bool(seed % 2),
            'episode_number': turn,
        }

    def reset(self, rng: np.random.Generator) -> dict[str, Any]:
        """Begin an episode."""
        self._config.update(self._drawn(int(rng.integers(2_000_000_000)), int(rng.integers(2))))
        self._core.reset()
        return self._core._observation

    def step(self, actions: list[int]) -> tuple[dict[str, Any], int, bool]:
        """One step of a tenth of a second: raw observation, 1 or -1 for a goal of the left or right team, the end."""
        raw, score, done, _ = self._core.step(actions)
        return raw, score, done

    def frame(self) -> np.ndarray:
        """The picture: uint8, height x width x 3."""
        return self._core._observation['frame']

    def close(self) -> None:
        """Give the engine back; another env of the process takes it on."""
        self._core.close()
