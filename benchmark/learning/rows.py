"""The reference problems: which configs are run, how far, and what counts as reached."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from nervex.config.builtin import builtin_configs

SEEDS = (0, 1, 2)
NERVEX, SB3 = 'nervex', 'sb3'
NOT_ALONE = ('_il', '_cql', '_td3_bc')  # configs that learn from recorded episodes


@dataclass(frozen=True)
class Row:
    """
    Overview:
        One line of the tables: a config and what its runs, one a seed, have to reach.
    Arguments:
        - config (:obj:`str`): name of a built-in config
        - side (:obj:`str`): who trains: 'nervex', or 'sb3' with the same settings
        - at_least, at_most (:obj:`float | None`): bounds of the mean return over seeds
        - median_steps (:obj:`int | None`): bound of the median of env steps
        - overrides (:obj:`tuple[str, ...]`): settings that differ from the config's
        - compared (:obj:`bool`): runs go to the end of their budget, for the picture of learning curves
    """

    config: str
    side: str = NERVEX
    at_least: float | None = None
    at_most: float | None = None
    median_steps: int | None = None
    overrides: tuple[str, ...] = ()
    compared: bool = False
    seeds: tuple[int, ...] = SEEDS

    @property
    def name(self) -> str:
        return self.config if self.side == NERVEX else f'{self.config}.{self.side}'

    def command(self, seed: object = 'SEED') -> str:
        """What a user types for one run."""
        more = ''.join(f' -o {setting}' for setting in self.overrides)
        return f'nervex -m serial -c {self.config} -s {seed}{more}'


# family -> what every config of it has to reach, but for the exceptions below
SOLVED = {'cartpole': 195.0, 'pendulum': -250.0, 'bitflip': 0.9}
EXCEPTIONS = {
    'cartpole_dqn': dict(median_steps=5_000),
    'cartpole_ppo': dict(median_steps=15_000),
    'pendulum_ppo': dict(at_least=-300.0),
    'bitflip_dqn': dict(at_least=None, at_most=0.1),
}
# compared with Stable-Baselines3 at the settings of RL Baselines3 Zoo; budgets are env steps, the same for both
BUDGETS = {
    'acrobot_ppo': 100_000,
    'acrobot_dqn': 50_000,
    'mountaincar_ppo': 200_000,
    'mountaincar_dqn': 120_000,
    'lunarlander_ppo': 300_000,
    'lunarlander_dqn': 40_000,
    'acrobot_qrdqn': 50_000,
}


def all_rows() -> list[Row]:
    """Every row, the short runs first."""
    configs = builtin_configs()
    rows = []
    for config in configs:
        family = config.split('_')[0]
        if family in SOLVED and not config.endswith(NOT_ALONE):
            rows.append(replace(Row(config, at_least=SOLVED[family]), **EXCEPTIONS.get(config, {})))
    for config, budget in BUDGETS.items():
        overrides = ('evaluator.stop_val=null', f'commander.max_env_step={budget}')
        rows += [Row(config, side, overrides=overrides, compared=True) for side in (NERVEX, SB3)]
    return rows


def readme_of(config: str) -> Path:
    """The page of the app that a config belongs to."""
    return Path(builtin_configs()[config]).parents[1] / 'README.md'
