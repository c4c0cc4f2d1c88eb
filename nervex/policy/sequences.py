"""Samples of recurrent policies: sequences that never cross the end of an episode, and states as columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from nervex.data import Batch
from nervex.torch_utils.crossing import to_arrays, to_tensors
from nervex.utils import tree
from nervex.utils.declare import setting


def sequence_settings(length: int, **collect: Any) -> dict[str, Any]:
    """What policies declare whose samples are sequences, for ``settings``: their length, and envs with states."""
    return dict(
        collect=dict(
            env_num=1,
            unroll_len=setting(length, 'int >= 1', 'steps of a sequence that are learned'),
            traj_len=setting(length, 'int >= 1 | inf', 'steps of one env between two cuts into sequences'),
            **collect,
        ),
        eval=dict(env_num=1),
    )


def pack_states(states: Any) -> Any:
    """
    Overview:
        Recurrent states as columns: a list with one state a row -> nested columns with one row each; the state of a
        single row -> the same without the first axis. A state is a tensor, or a tuple or dict of states.
    """
    if isinstance(states, list):
        first = states[0]
        if isinstance(first, (torch.Tensor, np.ndarray)):
            return tree.stack(states)
        keys = first.keys() if isinstance(first, dict) else range(len(first))
        return {str(key): pack_states([state[key] for state in states]) for key in keys}
    if isinstance(states, (torch.Tensor, np.ndarray)):
        return states
    items = states.items() if isinstance(states, dict) else enumerate(states)
    return {str(key): pack_states(value) for key, value in items}


def unpack_states(columns: Any) -> list[Any]:
    """The inverse of :func:`pack_states` for tensors and tuples of them: one state a row."""
    if isinstance(columns, torch.Tensor):
        return list(columns.unbind(0))
    parts = [unpack_states(columns[key]) for key in columns.keys()]
    if all(key.isdigit() for key in columns.keys()):
        return list(zip(*parts))
    return [dict(zip(columns.keys(), state)) for state in zip(*parts)]


def recalled(memory: dict[str, Any], fresh: np.ndarray, rows: np.ndarray, first: Any) -> list[Any]:
    """
    Overview:
        The states of these rows from where ``remember`` keeps them in columns of arrays; ``first`` for those in which
        nothing is to be remembered yet.
    """
    if not memory:
        packed = to_arrays(pack_states([first]))
        memory['state'] = tree.map(lambda x: np.zeros((len(fresh), *x.shape[1:]), x.dtype), packed)
    states = unpack_states(to_tensors(tree.index(memory['state'], rows)))
    return [first if new else state for new, state in zip(fresh[rows].tolist(), states)]


def remember(memory: dict[str, Any], fresh: np.ndarray, rows: np.ndarray, states: list[Any]) -> None:
    """Keep the new states of these rows, which are no longer fresh."""
    tree.write(memory['state'], rows, to_arrays(pack_states(states)))
    fresh[rows] = False


def state_before_first(model: Any, obs: Any) -> Any:
    """
    Overview:
        The state of one row before its first step: what the model says itself (``initial_state()``), else zeros in the
        shape of the states that it returns.
    Arguments:
        - obs (:obj:`dict`): the model's input for a block of observations
    """
    if hasattr(model, 'initial_state'):
        return model.initial_state()
    with torch.no_grad():
        one = map_tensors(obs, lambda x: x[:1])
        return map_tensors(model({**one, 'prev_state': [None]})['next_state'][0], torch.zeros_like)


def time_first(data: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """A batch of sequences with the time axis of these columns (those that it has) in front; states as a list."""
    data = {**data}
    for name in names:
        if name in data:
            data[name] = map_tensors(data[name], lambda x: x.transpose(0, 1))
    if 'prev_state' in data:
        data['prev_state'] = unpack_states(data['prev_state'])
    return data


def map_tensors(value: Any, fn: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Apply ``fn`` to every tensor in nested containers; what is no tensor stays."""
    return tree.map(lambda leaf: fn(leaf) if isinstance(leaf, torch.Tensor) else leaf, value)


def cut_sequences(traj: Batch, length: int, context: int = 0, repeated: int = 0) -> Batch:
    """
    Overview:
        Cut a block of steps into sequences of ``length`` steps. A sequence ends early with its episode or the block:
        the steps behind are padding, ``mask`` is False there and ``done`` True. Each sequence begins with ``context``
        earlier steps of its episode, to warm a recurrent state up. Where there are fewer, it is ``fresh``: what stands
        in their place has no meaning, and ``prev_state`` belongs to the first step behind them.
    Arguments:
        - traj (:obj:`Batch`): steps with ``obs``, ``next_obs``, ``done``; ``prev_state`` packed by ``pack_states``
        - repeated (:obj:`int`): steps at the head that were part of the block before: only context now
    Returns:
        - samples (:obj:`Batch`): M rows, the sequences of the first env, of the second, ...
    Shapes:
        - traj: columns :math:`(T, [N], *)`
        - samples: ``obs`` :math:`(M, context + length + 1, *)`, the last one is what follows the last step;
          ``prev_state`` :math:`(M, *)`; ``fresh`` :math:`(M, )`; ``mask`` and all others :math:`(M, length, *)`
    """
    done = np.asarray(traj['done'])
    if done.ndim == 1:
        return cut_sequences(tree.index(traj, np.s_[:, None]), length, context, repeated)
    start, env, size, origin = _plan(done, length, repeated)
    fresh = start - context < origin
    step = start[:, None] + np.arange(length)
    mask = np.arange(length) < size[:, None]
    last = (start + size - 1)[:, None]
    row, column = np.minimum(step, last), env[:, None]

    samples: dict[str, Any] = {}
    for key in traj.keys():
        if key not in ('obs', 'next_obs', 'prev_state', 'collect_iter'):
            samples[key] = tree.index(traj[key], (row, column))
    before = np.maximum(start[:, None] - context + np.arange(context), origin[:, None])
    whole = np.concatenate([before, row, last], axis=1)
    samples['obs'] = tree.index(traj['obs'], (whole, column))
    behind = np.concatenate([np.zeros_like(before, bool), ~mask, np.ones_like(last, bool)], axis=1)
    seq, _ = np.nonzero(behind)
    tree.write(samples['obs'], behind, tree.index(traj['next_obs'], (last[seq, 0], env[seq])))
    if 'prev_state' in traj:
        first = np.where(fresh, start, start - context)
        samples['prev_state'] = tree.index(traj['prev_state'], (first, env))
    samples['done'] = samples['done'] | ~mask
    return Batch.of({**samples, 'mask': mask, 'fresh': fresh})


def _plan(done: np.ndarray, length: int, repeated: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of each sequence: its first row, its env, its steps, and the first row of its episode."""
    steps, envs = done.shape
    rows = np.arange(steps)[:, None]
    begins = np.zeros((steps, envs), bool)
    begins[1:] = done[:-1]
    origin = np.maximum.accumulate(np.where(begins, rows, 0), axis=0)
    piece = np.maximum(origin, repeated)
    ends = np.where(done, rows + 1, steps)
    end = np.minimum.accumulate(ends[::-1], axis=0)[::-1]
    chosen = (rows >= repeated) & ((rows - piece) % length == 0)
    env, start = np.nonzero(chosen.T)
    return start, env, np.minimum(end[start, env] - start, length), origin[start, env]
