"""Small exact games of a team, to try algorithms on: their best returns are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from nervex.envs import BaseEnv, BaseEnvInfo, BaseEnvTimestep, EnvElementInfo
from nervex.utils.declare import setting, settings
from nervex.utils.errors import unknown_name

#: what two agents are paid for a pair of actions; the best pair of each is hard to find by changing one action alone
PAYOFFS = {
    'climbing': ((11, -30, 0), (-30, 7, 6), (0, 0, 5)),
    'penalty': ((10, 0, -10), (0, 2, 0), (-10, 0, 10)),
}


class TeamGame(BaseEnv):
    """
    Overview:
        What the games share: two agents of ``action_num`` actions each, one reward for both, and a few states, of which
        everybody sees what ``_view`` says. A subclass writes ``_begin``, ``_act`` and ``_view``.
    Shapes:
        - observation: ``agent_state`` :math:`(2, d)`, ``global_state`` :math:`(s, )`, ``action_mask`` :math:`(2, n)`
        - action: :math:`(2, )` ints
    """

    action_num = 2
    agent_num = 2

    def __init__(self, cfg: dict | None = None) -> None:
        super().__init__(cfg)
        self._over = True

    def _begin(self, rng: np.random.Generator) -> None:
        raise NotImplementedError(f'{type(self).__name__}._begin')

    def _act(self, actions: tuple[int, ...]) -> tuple[float, bool]:
        """The team's reward for these actions, and whether the game is over."""
        raise NotImplementedError(f'{type(self).__name__}._act')

    def _view(self) -> tuple[np.ndarray, np.ndarray]:
        """What each agent sees (2, d), and the whole state (s, )."""
        raise NotImplementedError(f'{type(self).__name__}._view')

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> dict[str, np.ndarray]:
        self._begin(self.episode_rng(seed))
        self._return, self._over = 0.0, False
        return self._seen()

    def step(self, action: Any) -> BaseEnvTimestep:
        if self._over:
            raise RuntimeError(f'{self!r}: call reset() before step(), and after the end of an episode')
        given = np.asarray(action).reshape(-1)
        if given.shape != (2,) or given.dtype.kind not in 'iu' or not 0 <= given.min() <= given.max() < self.action_num:
            raise ValueError(f'{self!r}: an action is 2 ints from 0 to {self.action_num - 1}, got {action!r}')
        reward, self._over = self._act(tuple(given.tolist()))
        self._return += reward
        info = {'final_eval_reward': self._return, 'truncated': False} if self._over else {}
        return BaseEnvTimestep(self._seen(), np.array([reward], np.float32), self._over, info)

    def info(self) -> BaseEnvInfo:
        if self._over:
            self._begin(np.random.default_rng(0))
        each, state = self._view()
        flag = {'min': 0.0, 'max': 1.0, 'dtype': np.float32, 'kind': 'continuous'}
        shapes = {'agent_state': each.shape, 'global_state': state.shape, 'action_mask': (2, self.action_num)}
        obs = EnvElementInfo(shapes, dict.fromkeys(shapes, flag))
        ends = {'min': 0, 'max': (self.action_num - 1,) * 2, 'dtype': np.int64, 'kind': 'multi_discrete'}
        act = EnvElementInfo((2,), {**ends, 'n': (self.action_num,) * 2})
        paid = {'min': -30.0, 'max': 11.0, 'dtype': np.float32, 'kind': 'continuous'}
        return BaseEnvInfo(2, obs, act, EnvElementInfo((1,), paid))

    def _seen(self) -> dict[str, np.ndarray]:
        each, state = self._view()
        mask = np.ones((2, self.action_num), np.float32)
        return {'agent_state': each, 'global_state': state, 'action_mask': mask}

    def __repr__(self) -> str:
        return f'{type(self).__name__}()'


class TwoStepGame(TeamGame):
    """
    Overview:
        The first agent's first action chooses one of two games. In the first one both are paid 7 whatever they do; in
        the second one 8 if both take their second action, 0 if both take the first, 1 otherwise. A team whose value is
        the sum of its agents' values takes the safe 7; one with a mixer finds the 8 (Rashid et al. 2018, section 5).
    """

    config = settings()
    _PAID = ((7.0, 7.0, 7.0, 7.0), (0.0, 1.0, 1.0, 8.0))

    def _begin(self, rng: np.random.Generator) -> None:
        self._state = 0

    def _act(self, actions: tuple[int, ...]) -> tuple[float, bool]:
        if self._state == 0:
            self._state = 1 + actions[0]
            return 0.0, False
        return self._PAID[self._state - 1][2 * actions[0] + actions[1]], True

    def _view(self) -> tuple[np.ndarray, np.ndarray]:
        state = np.eye(3, dtype=np.float32)[self._state]
        return np.concatenate([np.tile(state, (2, 1)), np.eye(2, dtype=np.float32)], 1), state


class MatrixGame(TeamGame):
    """
    Overview:
        One step, three actions each, paid by a table: ``climbing`` (best 11, beside two losses of 30) or ``penalty``
        (two best pairs of 10 that must not be mixed up). See Claus and Boutilier 1998.
    """

    config = settings(payoff=setting('climbing', ' | '.join(map(repr, PAYOFFS)), 'which table'))
    action_num = 3

    def __init__(self, cfg: dict | None = None) -> None:
        super().__init__(cfg)
        if self._cfg.payoff not in PAYOFFS:
            raise ValueError(unknown_name('payoff table', self._cfg.payoff, PAYOFFS))

    def _begin(self, rng: np.random.Generator) -> None:
        pass

    def _act(self, actions: tuple[int, ...]) -> tuple[float, bool]:
        return float(PAYOFFS[self._cfg.payoff][actions[0]][actions[1]]), True

    def _view(self) -> tuple[np.ndarray, np.ndarray]:
        return np.eye(2, dtype=np.float32), np.ones(1, np.float32)

    def __repr__(self) -> str:
        return f'MatrixGame({self._cfg.payoff})'


class RelayGame(TeamGame):
    """
    Overview:
        The first agent alone sees a bit, at the start only. Its action at that step is shown to the second agent in the
        next one; then come ``wait`` steps in which nobody sees anything, and at the last step the second agent is to
        name the bit: 1 for the team, else 0. Who guesses has 0.5; who neither speaks nor remembers can only guess.
    """

    config = settings(wait=setting(2, 'int >= 0', 'empty steps between the message and the answer'))

    def _begin(self, rng: np.random.Generator) -> None:
        self._bit, self._said, self._steps = int(rng.integers(2)), 0, 0

    def _act(self, actions: tuple[int, ...]) -> tuple[float, bool]:
        if self._steps == 0:
            self._said = actions[0]
        self._steps += 1
        over = self._steps == self._cfg.wait + 3
        return float(over and actions[1] == self._bit), over

    def _view(self) -> tuple[np.ndarray, np.ndarray]:
        each = np.zeros((2, 6), np.float32)  # the bit, the message, whether to answer, who one is
        each[:, 4:] = np.eye(2)
        if self._steps == 0:
            each[0, self._bit] = 1
        elif self._steps == 1:
            each[1, self._said] = 1
        each[:, 3] = self._steps == self._cfg.wait + 2
        each[:, 2] = self._steps == 1
        state = np.array([self._bit, self._said, self._steps / (self._cfg.wait + 3)], np.float32)
        return each, state

    def __repr__(self) -> str:
        return f'RelayGame(wait={self._cfg.wait})'
