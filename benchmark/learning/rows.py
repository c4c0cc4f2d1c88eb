"""The reference problems: which configs are run, how far, and what counts as reached."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from nervex.config.config import builtin_configs

SEEDS = (0, 1, 2)
NERVEX, SB3, EPYMARL, CLEANRL = 'nervex', 'sb3', 'epymarl', 'cleanrl'
NOT_ALONE = ('_il', '_cql', '_td3_bc', '_implicit_q')  # configs that learn from recorded episodes


@dataclass(frozen=True)
class Row:
    """
    Overview:
        One line of the tables: a config and what its runs, one a seed, have to reach.
    Arguments:
        - config (:obj:`str`): name of a built-in config
        - side (:obj:`str`): who trains: 'nervex', 'sb3' with the same settings, or 'epymarl' with settings of its own
        - peer (:obj:`str | None`): who else trains this; runs then go to the end of their budget, for the picture of
          learning curves
        - at_least, at_most (:obj:`float | None`): bounds of the mean return of every seed
        - win_rate (:obj:`float | None`): least part of the episodes that are won
        - median_steps (:obj:`int | None`): bound of the median of env steps
        - overrides (:obj:`tuple[str, ...]`): settings that differ from the config's
        - variant (:obj:`str`): tells rows of one config apart
    """

    config: str
    side: str = NERVEX
    peer: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    median_steps: int | None = None
    win_rate: float | None = None
    overrides: tuple[str, ...] = ()
    variant: str = ''
    seeds: tuple[int, ...] = SEEDS

    @property
    def problem(self) -> str:
        """What both sides of a comparison have in common."""
        return f'{self.config}_{self.variant}' if self.variant else self.config

    @property
    def name(self) -> str:
        return self.problem if self.side == NERVEX else f'{self.problem}.{self.side}'

    def command(self, seed: object = 'SEED') -> str:
        """What a user types for one run."""
        more = ''.join(f' -o {setting}' for setting in self.overrides)
        return f'nervex -m serial -c {self.config} -s {seed}{more}'


# family -> what every config of it has to reach, but for the exceptions below
SOLVED = {'cartpole': 195.0, 'pendulum': -250.0, 'bitflip': 0.9}
# run with twenty seeds, on which no setting was tuned: the first of them; without a family, on CartPole
MANY = dict.fromkeys(('a2c', 'impala', 'ppo', 'ppo_vanilla', 'r2d2', 'sac'), 200)
MANY |= dict.fromkeys(('dqn', 'qrdqn'), 420) | {'rainbow_dqn': 400, 'dqn_vanilla': 460}
MANY |= dict.fromkeys(('sqn', 'ppg', 'ppo_recurrent'), 500) | {'rainbow_iqn': 720}
MANY |= {f'pendulum_{name}': 500 for name in ('ddpg', 'ppo', 'sac', 'td3')} | {'bitflip_her_dqn': 500}
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
    'lunarlander_ppo': 300_000,
    'lunarlander_dqn': 40_000,
    'acrobot_qrdqn': 50_000,
}
# the same at the budgets of the Zoo, ten seeds a side: env steps, and the
# return from which Gymnasium calls the env solved
ZOO = {
    'acrobot_ppo': (1_000_000, -100.0),
    'acrobot_dqn': (100_000, -100.0),
    'mountaincar_ppo': (1_000_000, -110.0),
    'mountaincar_dqn': (120_000, -110.0),
    'lunarlander_ppo': (1_000_000, 200.0),
    'lunarlander_dqn': (100_000, 200.0),
}

# bodies of MuJoCo beside Stable-Baselines3, at equal settings: env steps by config
MUJOCO = {'mujoco_sac': 200_000, 'mujoco_td3': 200_000}
BODIES = {'hopper': 'Hopper-v5', 'halfcheetah': 'HalfCheetah-v5'}
MORE_SEEDS = {'mujoco_td3_hopper': (5, 4)}  # of nervex and of SB3, where three and two say too little


TO_THE_END = ('evaluator.stop_val=null',)  # what is learned in the end, not what was found once
# teams: what their runs have to reach
TEAMS = {
    'two_step_qmix': dict(at_least=8.0, overrides=TO_THE_END),
    'relay_mappo': dict(at_least=1.0),
    'smac_3m_mappo': dict(win_rate=0.95),
    'smac_3m_qmix': dict(win_rate=0.95),
    'smac_2s3z_mappo': dict(win_rate=0.8),
    'smac_2s3z_qmix': dict(win_rate=0.8),
    'smac_8m_mappo': dict(win_rate=0.9),
    'smac_8m_qmix': dict(win_rate=0.9),
    'smac_3m_coma': dict(win_rate=0.475),
    'smac_3m_collaq': dict(win_rate=0.475),
    'cooperative_navigation_atoc': {},
    'cooperative_navigation_ddpg': {},
}
# beside EPyMARL on cooperative navigation, 200,000 env steps: algorithm -> config with its settings, and what differs
ALGORITHMS = {
    'qmix': ('qmix', ()),
    'vdn': ('qmix', ('policy.policy_type=vdn', 'policy.learn.learning_rate=1e-3')),
    'iql': ('qmix', ('policy.policy_type=iql',)),
    'mappo': ('mappo', ()),
    'ippo': ('mappo', ('policy.policy_type=ippo', 'policy.learn.algo.gae_lambda=0.9')),
    'coma': ('coma', ()),
    'maddpg': ('maddpg', ()),
}


EMPTY = ('env.env_id=MiniGrid-Empty-8x8-v0', 'evaluator.stop_val=0.93')
SUITES = [
    Row('minigrid_ppo', at_least=0.93),
    Row('minigrid_ppo', at_least=0.93, variant='empty', overrides=EMPTY),
    Row('pointmaze_her_sac', at_least=0.9),
    Row('highway_dqn', at_least=20.0, seeds=(0, 1)),
]


def all_rows() -> list[Row]:
    """Every row, the short runs first."""
    rows = []
    for config in builtin_configs():
        family = config.split('_')[0]
        if family in SOLVED and not config.endswith(NOT_ALONE):
            first = MANY.get(config.removeprefix('cartpole_'))
            seeds = SEEDS if first is None else tuple(range(first, first + 20))
            row = Row(config, at_least=SOLVED[family], seeds=seeds)
            rows.append(replace(row, **EXCEPTIONS.get(config, {})))
    rows += [Row(config, **reached) for config, reached in TEAMS.items()]
    rows.append(Row('two_step_qmix', variant='vdn', at_most=7.5, overrides=('policy.policy_type=vdn', *TO_THE_END)))
    rows.append(Row('bitflip_her_dqn', variant='20_bits', at_least=0.9, overrides=('env.n_bits=20',)))
    for config, budget in BUDGETS.items():
        row = Row(config, peer=SB3, overrides=(*TO_THE_END, f'commander.max_env_step={budget}'))
        rows += [row, replace(row, side=SB3)]
    for config, (budget, bound) in ZOO.items():
        overrides = (*TO_THE_END, f'commander.max_env_step={budget}')
        row = Row(config, peer=SB3, at_least=bound, variant='zoo', overrides=overrides, seeds=tuple(range(10)))
        rows += [row, replace(row, side=SB3)]
    for body, env_id in BODIES.items():
        for config, budget in MUJOCO.items():
            overrides = (f'env.env_id={env_id}', f'commander.max_env_step={budget}')
            row = Row(config, peer=SB3, variant=body, overrides=overrides)
            ours, theirs = (tuple(range(count)) for count in MORE_SEEDS.get(row.problem, (3, 2)))
            rows += [replace(row, seeds=ours), replace(row, side=SB3, seeds=theirs)]
    rows += SUITES
    rows.append(Row('mujoco_ppo', variant='hopper', overrides=('env.env_id=Hopper-v5',)))
    for name, (settings, overrides) in ALGORITHMS.items():
        variant = name if overrides else ''
        row = Row(f'cooperative_navigation_{settings}', peer=EPYMARL, variant=variant, overrides=overrides)
        rows += [row, replace(row, side=EPYMARL, seeds=(1, 2, 3))]
    return rows


def readme_of(config: str) -> Path:
    """The page of the app that a config belongs to."""
    return Path(builtin_configs()[config]).parents[1] / 'README.md'
