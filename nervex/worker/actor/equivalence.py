"""Proof that a policy's ``@batched`` hooks mean the same as their row forms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from nervex.data import Batch
from nervex.policy.batched import is_batched
from nervex.policy.traj_block import TrajBlock
from nervex.torch_utils.crossing import to_arrays
from nervex.utils import tree
from nervex.worker.actor.rows import ObsBlock, as_array, columns_of, in_columns, transition_rows

if TYPE_CHECKING:
    from nervex.policy import Policy


class BatchedMismatch(AssertionError):
    """A column differs between the batched call and the calls row by row."""


def check_batched(policy: Policy, env: Any, steps: int = 16) -> int:
    """
    Overview:
        Plays one rollout and makes every transition twice: by one call for all envs, and by one call per env with the
        documented types. The training samples of these steps are likewise cut in one block and env by env. Values,
        shapes and dtypes must be equal.
    Arguments:
        - policy (:obj:`Policy`): with the collect mode initialised, and settings such as ``eps`` set
        - env: a launched env manager
        - steps (:obj:`int`): vector steps to play
    Returns:
        - rows (:obj:`int`): transitions compared; a column that differs raises ``BatchedMismatch`` naming it
    """
    mode = policy.collect_mode
    hooks, hook = in_columns(mode), mode.process_transition
    unmarked = SimpleNamespace(process_transition=lambda obs, output, timestep: hook(obs, output, timestep))
    by_rows = transition_rows(unmarked)
    blocks: list[dict[str, Any]] = []
    from_rows: list[dict[str, Any]] = []
    for _ in range(steps):
        ids, obs = env.observe()
        obs = tree.map(np.copy, obs)
        data_id, data = hooks.data_preprocess(ObsBlock(ids, obs))
        output = hooks.data_postprocess(data_id, hooks.forward(data_id, data))
        step = env.advance(ids, as_array(output['action']))
        if len(step.env_id) != len(ids):
            raise ValueError('check_batched: an env failed during the rollout; check the env first (check_env)')
        rows, block = columns_of(by_rows(obs, output, step), step), hooks.process_transition(obs, output, step)
        block = {name: as_array(value) for name, value in block.items()}
        _compare('_process_transition', rows, block)
        for columns, kept in ((block, blocks), (rows, from_rows)):
            kept.append(tree.map(np.copy, {'truncated': step.truncated, **columns}))
    if is_batched(mode.get_train_sample):
        _check_samples(mode, tree.stack(blocks), tree.stack(from_rows))
    return steps * env.env_num


def _check_samples(mode: Any, block: dict[str, Any], rows: dict[str, Any]) -> None:
    """
    Overview:
        The samples of one window (T, N), of columns and of rows, are equal; and those of N windows (T, ) of single envs
        are the same ones, step by step or env by env. There a model that the hook calls gets other numbers of rows,
        and a product of more rows may round differently.
    """
    repeats = mode.get_attribute('traj_overlap') or 0

    def cut(columns: dict[str, Any]) -> Batch:
        nested = {k: Batch(v) if isinstance(v, dict) else v for k, v in columns.items()}
        return mode.get_train_sample(TrajBlock.cut(nested, repeats))

    def compare(samples: Batch, rounding: bool = False) -> None:
        _compare('_get_train_sample', to_arrays(samples.to_dict()), to_arrays(together.to_dict()), rounding)

    together = cut(block)
    compare(cut(rows))
    env_num = rows['truncated'].shape[1]
    alone = [cut(tree.map(lambda x, e=e: x[:, e].copy(), rows)) for e in range(env_num)]
    env_by_env, steps = Batch.cat(alone), len(alone[0])
    try:
        compare(env_by_env, rounding=True)
    except BatchedMismatch:
        if len(together) != steps * env_num or any(len(samples) != steps for samples in alone):
            raise
        compare(env_by_env[np.arange(steps * env_num).reshape(env_num, steps).T.ravel()], rounding=True)


def _compare(hook: str, rows: dict[str, Any], columns: dict[str, Any], rounding: bool = False) -> None:
    """Raise for the first column of which values, shape or dtype differ."""
    for name in sorted(set(rows) | set(columns)):
        if name not in rows or name not in columns:
            raise BatchedMismatch(f'{hook}: the column {name!r} comes from only one of the two forms')
        try:
            for path, a, b in tree.zip({name: rows[name]}, {name: columns[name]}):
                _compare_leaf(f'{hook}: column {tree.label(path)!r}', a, b, rounding)
        except tree.TreeError as error:
            raise BatchedMismatch(f'{hook}: column {name!r} differs: {error}') from error


def _compare_leaf(name: str, a: np.ndarray, b: np.ndarray, rounding: bool) -> None:
    if a.shape != b.shape:
        raise BatchedMismatch(f'{name} differs: it has shape {a.shape} by rows and {b.shape} in one call')
    if a.dtype != b.dtype:
        raise BatchedMismatch(f'{name} differs: it is {a.dtype} by rows and {b.dtype} in one call')
    is_float = a.dtype.kind in 'fc'
    if rounding and is_float and np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True):
        return
    if not np.array_equal(a, b, equal_nan=is_float):
        raise BatchedMismatch(f'{name} differs' + f': largest difference {np.nanmax(np.abs(a - b)):.3g}' * is_float)
