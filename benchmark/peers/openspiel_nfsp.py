"""
OpenSpiel's NFSP in a small game of poker, by the settings of its example for Kuhn poker: exploitability over games.

    python benchmark/peers/openspiel_nfsp.py kuhn_poker GAMES SEED > CURVE.csv
"""

import sys
import time

import numpy as np
import torch
from open_spiel.python import policy, rl_environment
from open_spiel.python.algorithms import exploitability
from open_spiel.python.pytorch import nfsp

EVERY = 5000


class Averages(policy.Policy):
    """What the average networks of both players do."""

    def __init__(self, env: rl_environment.Environment, players: list[nfsp.NFSP]) -> None:
        super().__init__(env.game, [0, 1])
        self._players = players

    def action_probabilities(self, state: object, player_id: int | None = None) -> dict[int, float]:
        """Of the side to move."""
        side = state.current_player()
        legal = state.legal_actions(side)
        seen = {'info_state': [None, None], 'legal_actions': [None, None], 'current_player': side}
        seen['info_state'][side], seen['legal_actions'][side] = state.information_state_tensor(side), legal
        step = rl_environment.TimeStep(observations=seen, rewards=None, discounts=None, step_type=None)
        with self._players[side].temp_mode_as(nfsp.MODE.AVERAGE_POLICY):
            chances = self._players[side].step(step, is_evaluation=True).probs
        return {action: chances[action] for action in legal}


def main() -> None:
    """Play and learn; a line of CSV now and then."""
    name, games, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    np.random.seed(seed)
    torch.manual_seed(seed)
    env = rl_environment.Environment(name, players=2)
    env.seed(seed)
    size, actions = env.observation_spec()['info_state'][0], env.action_spec()['num_actions']
    rates = dict(
        replay_buffer_capacity=200_000, epsilon_decay_duration=games, epsilon_start=0.06, epsilon_end=0.001
    )  # fmt: skip
    players = [nfsp.NFSP(side, size, actions, [128], 2_000_000, 0.1, **rates) for side in (0, 1)]
    print('games,average,processor_s', flush=True)
    for game in range(games + 1):
        if game % EVERY == 0:
            value = exploitability.exploitability(env.game, Averages(env, players))
            print(f'{game},{value:.5f},{time.process_time():.1f}', flush=True)
        step = env.reset()
        while not step.last():
            step = env.step([players[step.observations['current_player']].step(step).action])
        for player in players:
            player.step(step)


if __name__ == '__main__':
    main()
