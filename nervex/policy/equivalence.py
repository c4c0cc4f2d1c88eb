"""Proof that a policy's ``@batched`` methods mean the same as their row forms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch

from nervex.data import Batch
from nervex.policy.action_space import joined
from nervex.policy.base_policy import Policy
from nervex.policy.batched import is_batched


class _Timestep(NamedTuple):
    """The documented row form of one env's answer."""

    obs: Any
    reward: torch.Tensor
    done: bool
    info: dict


class BatchedMismatch(AssertionError):
    """A column differs between the batched call and the calls row by row."""


def check_batched(policy: Policy, env: Any, steps: int = 16, atol: float = 1e-6) -> int:
    """
    Overview:
        Plays one rollout and makes every transition twice: by one call for all envs, and by one call per env with the
        documented types. The training samples of each env's steps are likewise cut in one block and env by env.
    Arguments:
        - policy (:obj:`Policy`): with the collect mode initialised, and settings such as ``eps`` set
        - env: a launched env manager
        - steps (:obj:`int`): vector steps to play
        - atol (:obj:`float`): tolerance; different batch sizes may round differently
    Returns:
        - rows (:obj:`int`): transitions compared; a column that differs raises ``BatchedMismatch`` naming it
    """
    from_rows: list[dict[str, Any]] = []
    blocks: list[dict[str, Any]] = []
    for _ in range(steps):
        ids, obs = env.observe()
        obs = _tensors(obs, copy=True)
        data_id, data = policy._data_preprocess_collect(SimpleNamespace(env_id=ids, obs=obs))
        output = policy._data_postprocess_collect(data_id, policy._forward_collect(data_id, data))
        step = env.advance(ids, joined(output['action']).numpy())
        if len(step.env_id) != len(ids):
            raise ValueError('check_batched: an env failed during the rollout; check the env first (check_env)')
        timestep = SimpleNamespace(
            obs=_tensors(step.obs, copy=True),
            reward=torch.as_tensor(step.reward).clone(),
            done=torch.as_tensor(step.done).clone(),
            info=list(step.info),
            env_id=ids,
            truncated=torch.as_tensor(step.truncated).clone(),
        )
        rows = [_row_call(policy, obs, output, timestep, k) for k in range(len(ids))]
        block = (
            dict(policy._process_transition(obs, output, timestep))
            if is_batched(policy._process_transition)
            else Batch.from_rows(rows).to_dict()
        )
        _compare('_process_transition', Batch.from_rows(rows), Batch(block), atol)
        block.setdefault('truncated', timestep.truncated)
        blocks.append(block)
        from_rows += rows
    if is_batched(policy._get_train_sample):
        _check_samples(policy, blocks, atol)
    return len(from_rows)


def _row_call(policy: Policy, obs: Any, output: dict, timestep: Any, k: int) -> dict:
    reward = timestep.reward[k] if timestep.reward.dim() > 1 else timestep.reward[k : k + 1]
    row = _Timestep(_row(timestep.obs, k), reward, bool(timestep.done[k]), timestep.info[k] or {})
    said = {key: value[k] if key == 'prev_state' else _row(value, k) for key, value in output.items()}
    return policy._process_transition(_row(obs, k), said, row)


def _check_samples(policy: Policy, blocks: list[dict], atol: float) -> None:
    """One block (T, N) against N blocks (T, ); samples may come step by step or env by env."""
    traj = _stacked(blocks)
    together = policy._get_train_sample(traj)
    env_num = traj['done'].shape[1]
    alone = [policy._get_train_sample(_map(traj, lambda column, e=e: column[:, e].copy())) for e in range(env_num)]
    env_by_env, steps = Batch.cat(alone), len(alone[0])
    if len(env_by_env) == len(together) == steps * env_num:
        try:
            step_by_step = env_by_env[np.arange(steps * env_num).reshape(env_num, steps).T.ravel()]
            return _compare('_get_train_sample', step_by_step, together, atol)
        except BatchedMismatch:
            if _same(env_by_env, together, atol):
                return None
            raise
    return _compare('_get_train_sample', env_by_env, together, atol)


def _stacked(blocks: list[dict]) -> Batch:
    """Blocks of one step -> a Batch with time first."""
    return Batch.of(
        {
            key: _stacked([block[key] for block in blocks])
            if isinstance(blocks[0][key], (dict, Batch))
            else np.stack([np.asarray(block[key]) for block in blocks])
            for key in blocks[0].keys()
        }
    )


def _map(batch: Batch, fn: Any) -> Batch:
    return Batch.of({key: _map(value, fn) if isinstance(value, Batch) else fn(value) for key, value in batch.items()})


def _same(rows: Batch, columns: Batch, atol: float) -> bool:
    try:
        _compare('', rows, columns, atol)
    except BatchedMismatch:
        return False
    return True


def _compare(method: str, rows: Batch, columns: Batch, atol: float) -> None:
    if set(rows.keys()) != set(columns.keys()):
        odd = sorted(set(rows.keys()) ^ set(columns.keys()))
        raise BatchedMismatch(f'{method}: the column {odd[0]!r} comes from only one of the two forms')
    for name in sorted(rows.keys()):
        if isinstance(rows[name], Batch):
            _compare(f'{method}: {name}', rows[name], columns[name], atol)
            continue
        a, b = np.asarray(rows[name]), np.asarray(columns[name])
        if a.shape != b.shape and a.squeeze().shape != b.squeeze().shape:
            raise BatchedMismatch(f'{method}: column {name!r} has shape {a.shape} by rows and {b.shape} in one call')
        if a.dtype.kind in 'fc' and not np.allclose(a.squeeze(), b.squeeze(), atol=atol, rtol=1e-5, equal_nan=True):
            raise BatchedMismatch(
                f'{method}: column {name!r} differs: largest difference {np.abs(a.squeeze() - b.squeeze()).max():.3g}'
            )
        if a.dtype.kind not in 'fc' and not np.array_equal(a.squeeze(), b.squeeze()):
            raise BatchedMismatch(f'{method}: column {name!r} differs')


def _tensors(value: Any, copy: bool) -> Any:
    if isinstance(value, dict):
        return {key: _tensors(item, copy) for key, item in value.items()}
    return torch.as_tensor(np.array(value, copy=copy))


def _row(value: Any, k: int) -> Any:
    if isinstance(value, dict):
        return {key: _row(item, k) for key, item in value.items()}
    return [_row(item, k) for item in value] if isinstance(value, list) else value[k]
