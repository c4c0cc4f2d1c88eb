"""From trajectories to training samples: n-step returns, advantages, sequences."""

import copy
from collections import deque
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch

from nervex.data import Batch
from nervex.rl_utils import adder_columns, her

Rows = Sequence[dict]


class TrajWindow(list):
    """
    Overview:
        Rows that :meth:`Adder.get_traj` took. The last ``repeats`` of them come again at the head of the next window,
        so what looks ahead (n-step returns) does not emit them yet.
    """

    def __init__(self, rows: Rows = (), repeats: int = 0) -> None:
        super().__init__(rows)
        self.repeats = repeats


class Adder:
    """
    Overview:
        Turns one trajectory into training samples. Every method takes a list or deque of dict rows and answers a
        list, or takes a Batch with time as first axis, (T, ...) or (T, N, ...) for N envs, and answers a Batch; the
        numbers are the same. n-step returns as in Rainbow (arXiv:1710.02298), advantages as in arXiv:1506.02438,
        hindsight goals as in arXiv:1707.01495.
    """

    def __init__(
        self,
        use_cuda: bool = False,
        unroll_len: int = 1,
        last_fn_type: str = 'last',
        null_transition: dict | None = None,
        her_strategy: str = 'future',
        her_replay_k: int = 1,
        seed: int = 0,
    ) -> None:
        """
        Arguments:
            - use_cuda (:obj:`bool`): accepted for compatibility; results stay on the device of their inputs
            - unroll_len (:obj:`int`): length of the sequences of :meth:`get_train_sample`; 1 leaves the rows alone
            - last_fn_type (:obj:`str`): what becomes of an incomplete last sequence: ``'last'`` completes it with the
              rows before it, ``'drop'`` drops it, ``'null_padding'`` appends null transitions
            - null_transition (:obj:`dict | None`): values of a padding row; None repeats the last row as done, with
              reward 0
            - her_strategy (:obj:`str`): goals of :meth:`get_her`: ``'future'``, ``'final'`` or ``'episode'``
            - her_replay_k (:obj:`int`): new goals for each row; 0 makes none
            - seed (:obj:`int`): of the generator that draws the goals
        """
        if last_fn_type not in ('last', 'drop', 'null_padding'):
            raise ValueError(f"Adder: unknown last_fn_type {last_fn_type!r}; use 'last', 'drop' or 'null_padding'")
        if her_strategy not in ('future', 'final', 'episode'):
            raise ValueError(f"Adder: unknown her_strategy {her_strategy!r}; use 'future', 'final' or 'episode'")
        if unroll_len < 1:
            raise ValueError(f'Adder: unroll_len must be at least 1, got {unroll_len}')
        if her_replay_k < 0:
            raise ValueError(f'Adder: her_replay_k must be at least 0, got {her_replay_k}')
        self._use_cuda = use_cuda
        self._unroll_len = unroll_len
        self._last_fn_type = last_fn_type
        self._null_transition = null_transition
        self._her_strategy = her_strategy
        self._her_replay_k = her_replay_k
        self._generator = np.random.default_rng(seed)

    def state_dict(self) -> dict[str, Any]:
        """Its source of chance, which hindsight goals are drawn from."""
        return {'generator': self._generator.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        self._generator.bit_generator.state = state['generator']

    def get_traj(self, data: deque, traj_len: int | float | str | None, return_num: int = 0) -> TrajWindow:
        """
        Overview:
            Pop the next window of at most ``traj_len`` rows from the front. Unless the episode is over, copies of its
            last ``return_num`` rows stay at the front, so that the next window overlaps and no row loses its n-step
            target. With too few rows to make progress nothing is taken.
        Arguments:
            - data (:obj:`deque`): the live rows of one env, oldest first
            - traj_len (:obj:`int | float | str | None`): rows to take; ``'inf'`` takes all, as does None, which
              ``collect.traj_len`` is by default
            - return_num (:obj:`int`): rows that come again, e.g. nstep
        Returns:
            - window (:obj:`TrajWindow`): a list; ``window.repeats`` says how many trailing rows come again
        """
        if not isinstance(data, deque):
            raise TypeError(f'get_traj: got a {type(data).__name__}, expected the live deque of one env')
        endless = traj_len in ('inf', float('inf'), None)
        if not (endless or (isinstance(traj_len, Integral) and traj_len >= 1)) or return_num < 0:
            raise ValueError(
                f"get_traj: traj_len is an int of at least 1 or 'inf', and return_num at least 0; got "
                f'{traj_len!r} and {return_num!r}'
            )
        if not data:
            return TrajWindow()
        wanted = len(data) if endless else min(max(int(traj_len), return_num + 1), len(data))
        over = adder_columns.is_over(data[wanted - 1])
        if not over and wanted <= return_num:
            return TrajWindow()
        window = TrajWindow([data.popleft() for _ in range(wanted)], 0 if over else return_num)
        if window.repeats:
            data.extendleft(copy.copy(row) for row in reversed(window[-return_num:]))
        return window

    def get_nstep_return_data(
        self,
        data: Any,
        nstep: int,
        traj_len: int | float | str | None = None,
        gamma: float | None = None,
        overlap: int = 0,
    ) -> Any:
        """
        Overview:
            n-step transitions: ``reward`` becomes the next n rewards (zeros after the end), ``next_obs``, ``done`` and
            ``truncated`` those of the last row in the window. Windows end at ``done`` and at the end of the data.
            Rows that come again are left to the next call, which knows what follows them.
        Arguments:
            - data (:obj:`Sequence[dict] | Batch`): one trajectory
            - nstep (:obj:`int`): number of rewards
            - traj_len (:obj:`int | float | str | None`): not needed; accepted because older policies pass it
            - gamma (:obj:`float | None`): adds the column ``value_gamma``, gamma to the power of the steps really
              taken, which the losses need wherever a window was cut short (for nstep > 1). Without it the windows that
              a time limit (``truncated``) cut short are left out: what follows them has a value, but no discount
            - overlap (:obj:`int`): for a Batch: how many of its last rows come again; a :class:`TrajWindow` knows it
              itself
        Shapes:
            - rows: ``reward`` :math:`(nstep, )`; Batch: ``reward`` :math:`(T - overlap, [N], nstep)`
        """
        if nstep < 1:
            raise ValueError(f'get_nstep_return_data: nstep must be at least 1, got {nstep}')
        if _is_rows(data):
            return adder_columns.nstep_rows(list(data), nstep, gamma, getattr(data, 'repeats', overlap))
        return adder_columns.nstep_columns(data, nstep, gamma, overlap)

    def get_gae(
        self, data: Any, last_value: torch.Tensor | float, gamma: float = 0.99, gae_lambda: float = 0.95
    ) -> Any:
        """
        Overview:
            Add the column ``adv`` by :func:`nervex.rl_utils.gae` from ``value``, ``reward`` and, where present,
            ``done``, ``truncated`` and ``next_value``.
        Arguments:
            - data (:obj:`Sequence[dict] | Batch`): one trajectory
            - last_value (:obj:`torch.Tensor | float`): value of the observation after the last row
        """
        if _is_rows(data):
            return adder_columns.gae_rows(list(data), last_value, gamma, gae_lambda)
        return adder_columns.gae_columns(data, last_value, gamma, gae_lambda)

    def get_gae_with_default_last_value(
        self, data: Any, done: bool, gamma: float = 0.99, gae_lambda: float = 0.95
    ) -> Any:
        """
        Overview:
            :meth:`get_gae` without a value of the last observation at hand: 0 when the episode is over, otherwise the
            last row is given up and lends its own value. So it is where a time limit cut the episode (``truncated``)
            and no ``next_value`` is stored: such an end is worth more than 0.
        """
        if len(data) == 0:
            return data
        is_rows = _is_rows(data)
        last = data[-1] if is_rows else {key: data[key][-1] for key in data.keys()}
        cut = 'truncated' in last and 'next_value' not in last and bool(torch.as_tensor(last['truncated']).any())
        if done and not cut:
            return self.get_gae(data, 0.0, gamma, gae_lambda)
        return self.get_gae(list(data)[:-1] if is_rows else data[:-1], last['value'], gamma, gae_lambda)

    def get_train_sample(self, data: Any) -> Any:
        """
        Overview:
            Cut a trajectory into sequences of ``unroll_len`` steps; with 1 the data is returned as it is.
        Returns:
            - samples (:obj:`list[dict] | Batch`): dicts of lists with ``unroll_len`` items each; or a Batch whose
              columns have shape :math:`(M, unroll\\_len, *)`, piece by piece and within a piece env by env
        """
        if self._unroll_len == 1 or len(data) == 0:
            return data
        settings = self._unroll_len, self._last_fn_type, self._null_transition
        if _is_rows(data):
            return adder_columns.unroll_rows(list(data), *settings)
        return adder_columns.unroll_columns(data, *settings)

    def get_her(
        self,
        data: Any,
        merge_func: her.Merge | None = None,
        split_func: her.Split | None = None,
        goal_reward_func: her.GoalReward | None = None,
        ends_at_goal: bool = True,
    ) -> Any:
        """
        Overview:
            Hindsight experience replay: the rows of one episode again, with goals that it reached, ``her_replay_k``
            for each row. The rows themselves are not among them. See :func:`nervex.rl_utils.her.relabel`.
        Arguments:
            - data (:obj:`Sequence[dict] | Batch`): one whole episode
            - merge_func, split_func, goal_reward_func (:obj:`Callable | None`): how goals sit in observations, of
              single rows; None is ``concat(state, goal)`` with reward 1 on equality
            - ends_at_goal (:obj:`bool`): a row that reaches its new goal is done
        """
        if len(data) == 0:
            return data
        sources = her.goal_sources(self._her_strategy, len(data), self._her_replay_k, self._generator)
        rows = her.relabel(
            data if _is_rows(data) else adder_columns.to_rows(data),
            sources,
            merge_func,
            split_func,
            goal_reward_func,
            ends_at_goal,
        )
        return rows if _is_rows(data) else adder_columns.from_rows(rows, data)


def _is_rows(data: Any) -> bool:
    if isinstance(data, (list, tuple, deque)):
        return True
    if isinstance(data, Batch):
        return False
    raise TypeError(f'Adder: got a {type(data).__name__}, expected dict rows in a list or deque, or a Batch')
