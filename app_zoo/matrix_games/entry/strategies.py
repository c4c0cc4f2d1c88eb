"""
What the snapshots of a run of rock-paper-scissors do, and how much they can be exploited:

    python -m app_zoo.matrix_games.entry.strategies RUN
"""

from __future__ import annotations

import argparse
import glob
import os
import re

import numpy as np

from app_zoo.matrix_games.envs import exploitability
from app_zoo.matrix_games.envs.matrix_games import PAYOFFS
from nervex.entry.cli import told_in_one_message
from nervex.run.build import load_policy
from nervex.utils.errors import NothingThereError


def strategy_of(path: str) -> np.ndarray:
    """How often the policy in a checkpoint takes rock, paper and scissors in the first round."""
    mode = load_policy(path).eval_mode
    data_id, data = mode.data_preprocess({0: {'observation': np.zeros(6, np.float32), 'action_mask': np.ones(3)}})
    logit = np.asarray(mode.forward(data_id, data)['logit'], np.float64).reshape(3)
    chance = np.exp(logit - logit.max())
    return chance / chance.sum()


def strategies(folder: str) -> np.ndarray:
    """Those of all snapshots of a run, or of the main player of a league, oldest first: (n, 3)."""
    places = ('snapshots/*.pth.tar', 'league/main_player_*_ckpt_*.pth.tar')
    found = [path for place in places for path in glob.glob(os.path.join(glob.escape(folder), place))]
    found.sort(key=lambda path: int(re.findall(r'\d+', os.path.basename(path))[-1]))
    if not found:
        raise NothingThereError(f'{folder}: holds no snapshots of a policy that played against itself, nor of a league')
    return np.stack([strategy_of(path) for path in found])


@told_in_one_message()
def main(args: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('run', help='its folder')
    parser.add_argument('payoff', nargs='?', default='plain', choices=PAYOFFS)
    options = parser.parse_args(args)
    seen, payoff = strategies(options.run), options.payoff
    each = [exploitability(one, payoff) for one in seen]
    print(f'{len(seen)} snapshots, exploitability of each: mean {np.mean(each):.3f}, last {each[-1]:.3f}')
    for quarter in range(1, 5):
        mean = seen[: -(-len(seen) * quarter // 4)].mean(0)
        print(
            f'average of the first {quarter}/4 of them {np.round(mean, 3).tolist()}: '
            f'exploitability {exploitability(mean, payoff):.3f}'
        )


if __name__ == '__main__':
    main()
