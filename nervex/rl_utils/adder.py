"""From trajectories to training samples: n-step returns, advantages, sequences."""

import copy
from collections import deque
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch

from nervex.data import Batch
from nervex.rl_utils import her
from nervex.rl_utils.checks import ShapeError
from nervex.rl_utils.gae import gae, gae_data
from nervex.utils import tree
from nervex.utils.part_state import HasState

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


class Adder(HasState):
    """
    Overview:
        Turns one trajectory into training samples. Every method takes a list or deque of dict rows and answers a
        list, or takes a Batch with time as first axis, (T, ...) or (T, N, ...) for N envs, and answers a Batch; the
        numbers are the same. n-step returns as in Rainbow (arXiv:1710.02298), advantages as in arXiv:1506.02438,
        hindsight goals as in arXiv:1707.01495.
    """

    resume_parts = ('_generator',)  # which hindsight goals are drawn from

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
        over = bool(data[wanted - 1].get('done', False))
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
        if not _is_rows(data):
            return _nstep_columns(data, nstep, gamma, overlap)
        if not data:
            return []
        rows = list(data)
        columns = {'next_obs': np.arange(len(rows)), **_numbers(rows, 'reward', 'done', 'truncated')}
        columns = {'row': np.arange(len(rows)), 'done': torch.zeros(len(rows)), **columns}
        if gamma is not None:
            columns['value_gamma'] = torch.full((len(rows),), gamma)
        samples = _nstep_columns(Batch.of(columns), nstep, gamma, getattr(data, 'repeats', overlap))
        result = []
        for sample in samples:  # whose next_obs says which row lends its own
            row, last = dict(rows[sample['row']]), rows[sample['next_obs']]
            row.update({key: last[key] for key in ('next_obs', 'done', 'truncated') if key in row})
            row.update({key: sample[key] for key in ('reward', 'value_gamma') if key in samples})
            result.append(row)
        return result

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
        if not _is_rows(data):
            return _gae_columns(data, last_value, gamma, gae_lambda)
        if data:
            columns = Batch.of(_numbers(data, 'value', 'reward', 'done', 'truncated', 'next_value'))
            adv = _gae_columns(columns, torch.as_tensor(last_value).reshape(()), gamma, gae_lambda)['adv']
            shape = torch.as_tensor(data[0]['value']).shape
            for row, advantage in zip(data, adv):  # the rows themselves get it
                row['adv'] = advantage.reshape(shape)
        return list(data)

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
        settings = self._unroll_len, self._last_fn_type
        if not _is_rows(data):
            return _unroll_columns(data, *settings, self._null_transition or {})
        places = Batch.of({'row': np.arange(len(data)), 'done': np.zeros(len(data))})
        pieces = _unroll_columns(places, *settings, {'row': -1})['row'].tolist()
        rows = list(data)
        return [_transposed([rows[t] if t >= 0 else self._null_row(rows[-1]) for t in piece]) for piece in pieces]

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
            data if _is_rows(data) else [{key: torch.as_tensor(row[key]) for key in row.keys()} for row in data],
            sources,
            merge_func,
            split_func,
            goal_reward_func,
            ends_at_goal,
        )
        return rows if _is_rows(data) else _columns_like(data, rows)

    def _null_row(self, template: dict) -> dict:
        """A copy of the template, over, with reward 0 and value_gamma 0, and then what ``null_transition`` says."""
        row = copy.deepcopy(template)
        row['done'] = torch.ones_like(row['done']) if isinstance(row['done'], torch.Tensor) else type(row['done'])(1)
        zeros = {key: row[key] * 0 for key in ('reward', 'value_gamma') if key in row}
        return {**row, **zeros, **copy.deepcopy(self._null_transition or {})}


def _is_rows(data: Any) -> bool:
    if isinstance(data, (list, tuple, deque)):
        return True
    if isinstance(data, Batch):
        return False
    raise TypeError(f'Adder: got a {type(data).__name__}, expected dict rows in a list or deque, or a Batch')


# ---- n-step returns
def _nstep_columns(traj: Any, nstep: int, gamma: float | None, overlap: int) -> Any:
    """See :meth:`nervex.rl_utils.adder.Adder.get_nstep_return_data`."""
    done = traj['done']
    steps = done.shape[0]
    kept = steps - overlap
    if not 0 <= overlap <= steps:
        raise ShapeError(f'get_nstep_return_data: overlap {overlap} of a block of {steps} steps')
    columns = {key: traj[key][:kept] for key in traj.keys()} if overlap else dict(traj.items())
    reward = _step_reward(traj['reward'], done.shape)
    if nstep == 1:
        columns['reward'] = reward[:kept, ..., None]
        return type(traj).of(columns)
    window, taken = _windows(_as_numpy(reward), _as_numpy(done), nstep, kept)
    columns['reward'] = _like(window, reward)
    if gamma is not None:
        columns['value_gamma'] = _like(np.power(gamma, taken, dtype=window.dtype), reward)
    take = _gatherer(taken, done.shape)
    for key in ('next_obs', 'done', 'truncated'):
        if key in columns:
            columns[key] = tree.map(take, traj[key])
    samples = type(traj).of(columns)
    if gamma is not None or 'truncated' not in columns:
        return samples
    cut = (taken < nstep) & (_as_numpy(columns['truncated']) != 0)
    if cut.any() and cut.ndim > 1:
        raise ValueError(
            'get_nstep_return_data: a time limit cut windows short, whose next value counts by gamma to the power of '
            'the steps taken; pass gamma=, or hand over one env at a time, of which such rows are left out'
        )
    return samples[np.flatnonzero(~cut)] if cut.any() else samples


def _windows(reward: np.ndarray, done: np.ndarray, nstep: int, kept: int) -> tuple[np.ndarray, np.ndarray]:
    """The rewards of each window, (T', [N], nstep), and how many steps it holds, (T', [N])."""
    window = np.zeros((kept, *reward.shape[1:], nstep), reward.dtype)
    window[..., 0] = reward[:kept]
    taken = np.ones(window.shape[:-1], np.int64)
    inside = taken.astype(bool)
    for k in range(1, min(nstep, reward.shape[0])):
        ahead = min(kept, reward.shape[0] - k)  # the later windows leave the data
        inside[ahead:] = False
        inside[:ahead] &= done[k - 1 : k - 1 + ahead] == 0
        np.copyto(window[:ahead, ..., k], reward[k : k + ahead], where=inside[:ahead])
        taken += inside
    return window, taken


def _gatherer(taken: np.ndarray, shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """A function that picks the last row of each window out of a column (T, [N], *)."""
    kept = taken.shape[0]
    last = np.arange(-1, kept - 1).reshape(-1, *[1] * (taken.ndim - 1)) + taken
    if len(shape) == 2:
        last = last * shape[1] + np.arange(shape[1])
    flat = last.reshape(-1)

    def take(column: Any) -> Any:
        rows = column.reshape(-1, *column.shape[len(shape) :])
        return _picked(rows, flat).reshape(kept, *column.shape[1:])

    return take


# ---- advantages
def _gae_columns(traj: Any, last_value: torch.Tensor | float, gamma: float, gae_lambda: float) -> Any:
    """See :meth:`nervex.rl_utils.adder.Adder.get_gae`."""
    columns = dict(traj.items())
    value = _as_tensor(columns['value'])
    reward = _as_tensor(_step_reward(columns['reward'], value.shape)).to(value.dtype)
    done, truncated, following = (
        _as_tensor(columns[key]) if key in columns else None for key in ('done', 'truncated', 'next_value')
    )
    if following is None:
        if truncated is not None and bool(truncated[:-1].any()):  # the last step alone has its own last value
            raise ValueError(
                'get_gae: an inner step is truncated, so its bootstrap value is not that of the next row; store the '
                "column 'next_value', the value of each step's own next observation"
            )
        last = torch.as_tensor(last_value, dtype=value.dtype, device=value.device)
        following = torch.cat([value[1:], last.expand(value.shape[1:]).unsqueeze(0)])
    fields = gae_data(value, reward, done, None if done is None else truncated, following)
    columns['adv'] = _like(gae(fields, gamma, gae_lambda), columns['value'])
    return type(traj).of(columns)


# ---- sequences
def _unroll_columns(traj: Any, unroll_len: int, last_fn_type: str, null_transition: dict) -> Any:
    """See :meth:`nervex.rl_utils.adder.Adder.get_train_sample`."""
    shape = traj['done'].shape
    pieces, pad = _pieces(shape[0], unroll_len, last_fn_type)
    index = pieces.reshape(-1)

    def cut(column: Any) -> Any:
        picked = _picked(column, index).reshape(len(pieces), unroll_len, *column.shape[1:])
        if len(shape) == 2:  # (pieces, unroll_len, N, *) -> (pieces, N, unroll_len, *)
            picked = picked.swapaxes(1, 2)
            picked = picked.reshape(-1, *picked.shape[2:])
        return picked

    columns = {key: tree.map(cut, traj[key]) for key in traj.keys()}
    if pad:  # the columns were gathered, so this memory is our own
        zeros = {key: 0 for key in ('reward', 'value_gamma') if key in columns}
        at = slice(len(columns['done']) - (shape[1] if len(shape) == 2 else 1), None), slice(unroll_len - pad, None)
        for key, value in {'done': 1, **zeros, **null_transition}.items():
            if isinstance(value, dict):
                tree.write(dict(columns[key].items()), at, value)
            else:
                columns[key][at] = torch.as_tensor(value) if isinstance(columns[key], torch.Tensor) else value
    return type(traj).of(columns)


def _pieces(steps: int, unroll_len: int, last_fn_type: str) -> tuple[np.ndarray, int]:
    """The steps of each sequence, (M, unroll_len), and how many at the end of the last one are padding."""
    rest, pad = steps % unroll_len, 0
    starts = list(range(0, steps - rest, unroll_len))
    if rest and last_fn_type != 'drop':
        if last_fn_type == 'last' and starts:
            starts.append(steps - unroll_len)
        else:
            starts.append(steps - rest)
            pad = unroll_len - rest
    return np.minimum(np.asarray(starts, np.int64)[:, None] + np.arange(unroll_len), steps - 1), pad


def _transposed(piece: list[Any]) -> Any:
    if isinstance(piece[0], dict):
        return {key: _transposed([row[key] for row in piece]) for key in piece[0]}
    return piece


# ---- rows and columns
def _numbers(rows: Rows, *keys: str) -> dict[str, torch.Tensor]:
    """Columns of the numbers, one a row and as floats, that the first row has."""
    found = {}
    for key in keys:
        if key in rows[0]:
            numbers = [torch.as_tensor(row[key]) for row in rows]
            if any(number.numel() != 1 for number in numbers):
                shape = tuple(numbers[0].shape)
                raise ShapeError(f"Adder: '{key}' of a row has shape {shape}, expected one number a step")
            column = torch.stack([number.reshape(()) for number in numbers])
            found[key] = column if column.is_floating_point() else column.float()
    return found


def _columns_like(like: Any, rows: list[dict]) -> Any:
    """Rows as columns of the shape, dtype and kind that ``like`` has."""
    if not rows:
        return like[:0]
    stacked = {key: torch.stack([torch.as_tensor(row[key]) for row in rows]) for key in rows[0]}
    shaped = {key: column.reshape(len(rows), *like[key].shape[1:]) for key, column in stacked.items()}
    return type(like).of({key: _like(column, like[key]) for key, column in shaped.items()})


def _step_reward(reward: Any, shape: tuple[int, ...]) -> Any:
    if tuple(reward.shape) == (*shape, 1):
        return reward[..., 0]
    if tuple(reward.shape) != tuple(shape):
        raise ShapeError(f'Adder: reward has shape {tuple(reward.shape)}, expected {tuple(shape)} or {(*shape, 1)}')
    return reward


def _picked(column: Any, index: np.ndarray) -> Any:
    if isinstance(column, torch.Tensor):
        return column.index_select(0, torch.from_numpy(index).to(column.device))
    return column.take(index, 0)


def _as_tensor(column: Any) -> torch.Tensor:
    return column if isinstance(column, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(column))


def _as_numpy(column: Any) -> np.ndarray:
    return column.detach().cpu().numpy() if isinstance(column, torch.Tensor) else column


def _like(result: Any, column: Any) -> Any:
    """A result as the kind of column that it comes from."""
    if not isinstance(column, torch.Tensor):
        return result.numpy() if isinstance(result, torch.Tensor) else result
    return (result if isinstance(result, torch.Tensor) else torch.from_numpy(result)).to(column.device)
