"""
Scripted players at a scenario: goals an episode, and their episodes as trajectory files to imitate.

    python -m app_zoo.gfootball.entry.bot --scenario academy_empty_goal --episodes 200 [--bot attacker] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

import numpy as np

from app_zoo.gfootball.envs import GFootballEnv
from app_zoo.gfootball.envs.bots import BOTS, Bot
from nervex.data import TrajectoryWriter
from nervex.entry.cli import told_in_one_message
from nervex.entry.options import at_least_one


def play(env: GFootballEnv, bot: Bot, seed: int | None = None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """An episode in which the bot acts for all that are controlled: rows as of ``-m collect``, and the last info."""
    obs, rows, alone = env.reset(seed=seed), [], env.info().agent_num == 1
    while True:
        actions = np.array([bot(env.raw, int(player)) for player in env.raw['left_agent_controlled_player']])
        action = actions[0] if alone else actions
        after, reward, done, info = env.step(action)
        cut = bool(info.get('truncated', False))
        row = {'obs': obs, 'action': action, 'reward': reward, 'next_obs': after, 'done': done, 'truncated': cut}
        rows.append(row)
        obs = after
        if done:
            return rows, info


@told_in_one_message()
def main(args: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--scenario', default='academy_empty_goal_close')
    parser.add_argument('--controlled', type=at_least_one, default=1, help='players that the bot acts for')
    parser.add_argument('--bot', default='attacker', choices=BOTS)
    parser.add_argument('--episodes', type=at_least_one, default=100)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--out', help='folder for trajectory files')
    parser.add_argument('--won', action='store_true', help='save only episodes that were won')
    options = parser.parse_args(args)
    cfg = {'scenario': options.scenario, 'controlled': options.controlled, 'builtin_ai': options.bot == 'builtin'}
    goals, steps, saved = [], 0, 0
    with GFootballEnv(cfg) as env, contextlib.ExitStack() as stack:
        env.seed(options.seed)
        env.info()  # which tells what is missing before there is a folder
        writer = stack.enter_context(TrajectoryWriter(options.out)) if options.out else None
        for _ in range(options.episodes):
            rows, info = play(env, BOTS[options.bot])
            goals.append(info['final_eval_reward'])
            steps += len(rows)
            if writer is not None and (info['win'] or not options.won):
                writer.add(rows)
                saved += 1
    won = np.mean(np.array(goals) > 0)
    print(
        f'{options.bot}, {options.scenario}: {np.mean(goals):.2f} goals an episode, {won:.0%} won, '
        f'{steps / options.episodes:.0f} steps; {saved} of {options.episodes} episodes saved'
    )


if __name__ == '__main__':
    main()
