"""What selfplay_bench.py measures: nervex's collecting, and loops over one game of PettingZoo and of OpenSpiel."""

from collections.abc import Callable

import numpy as np
import torch
from clock import Clock

from nervex.model import create_model

MOVES, WIDTHS = 3000, [256, 256]
Cases = dict[str, Callable[[Clock], int]]


def _player(obs_dim: int) -> Callable[[np.ndarray, np.ndarray], int]:
    """The network as a player of one game: (observation, legal actions) -> action."""
    net = create_model(dict(model_type='fc_vac', obs_dim=obs_dim, action_dim=7, hidden_dim_list=WIDTHS))

    def act(obs: np.ndarray, legal: np.ndarray) -> int:
        logit = net.compute_action({'obs': torch.from_numpy(obs)[None]})['logit'][0]
        logit = logit.masked_fill(torch.from_numpy(legal) == 0, -torch.inf)
        return int(torch.multinomial(logit.softmax(0), 1))

    return torch.no_grad()(act)


def pettingzoo() -> Cases:
    """``env.last``, one forward, ``env.step``."""
    from pettingzoo.classic import connect_four_v3

    def case(clock: Clock) -> int:
        env, act, moves = connect_four_v3.env(), _player(84), 0
        with clock:
            while moves < MOVES:
                env.reset(seed=moves)
                while True:
                    obs, _, terminated, truncated, _ = env.last()
                    if terminated or truncated:
                        break
                    env.step(act(obs['observation'].astype(np.float32).ravel(), obs['action_mask']))
                    moves += 1
        return moves

    return {'connect_four': case}


def openspiel() -> Cases:
    """``observation_tensor``, one forward, ``apply_action``."""
    import pyspiel

    def case(clock: Clock) -> int:
        game = pyspiel.load_game('connect_four')
        act, moves = _player(int(np.prod(game.observation_tensor_shape()))), 0
        with clock:
            while moves < MOVES:
                state = game.new_initial_state()
                while not state.is_terminal():
                    obs = np.array(state.observation_tensor(), np.float32)
                    state.apply_action(act(obs, np.array(state.legal_actions_mask())))
                    moves += 1
        return moves

    return {'connect_four': case}


def _nervex(games: int) -> Cases:
    def case(clock: Clock) -> int:
        from nervex.run.build import build_serial

        overrides = dict(
            exp_name='run',
            env=dict(
                env_type='connect_four', env_manager_type='vector', actor_env_num=games, evaluator_env_num=1,
                opponent_acts='sampled',
            ),
            policy=dict(policy_type='ppo', model=dict(hidden_dim_list=WIDTHS)),
            actor=dict(n_sample=games * 32),
            evaluator=dict(n_episode=1),
            commander=dict(selfplay='latest', snapshot_freq=1, max_env_step=10**9),
        )  # fmt: skip
        with build_serial(overrides, clock.round) as run:
            run.commander.step()  # takes the first snapshot
            run.collect()  # games against chance end, recordings are made
            (duel,) = run.commander.selfplay.duels
            plays, moves = duel.game.move, [0]

            def counted(rows: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                moves[0] += len(rows)
                return plays(rows, actions)

            for _ in range(2):
                run.collect()
            duel.game.move = counted
            with clock:
                for _ in range(max(2, 20 * MOVES // (games * 64))):
                    run.collect()
        return moves[0]

    return {'connect_four': case}


def nervex_16() -> Cases:
    """16 games at once."""
    return _nervex(16)


def nervex_64() -> Cases:
    """64 games at once."""
    return _nervex(64)


def nervex_256() -> Cases:
    """256 games at once."""
    return _nervex(256)
