"""The same jobs as Tianshou, Stable-Baselines3 and TorchRL do them, each in its own memory layout."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from returns_jobs import GAMMA, LAMBDA, NSTEP, Rollout, cases


def _env_major(column: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(column.T).reshape(-1)


def _time_major(answer: Any, rollout: Rollout) -> np.ndarray:
    return np.asarray(answer).reshape(rollout.envs, rollout.steps).T


def _tianshou_buffer(rollout: Rollout) -> tuple[Any, Any, np.ndarray]:
    from tianshou.data import Batch, VectorReplayBuffer

    buffer, zeros = VectorReplayBuffer(rollout.steps * rollout.envs, rollout.envs), np.zeros(rollout.envs)
    for t in range(rollout.steps):
        done = rollout.done[t]
        buffer.add(
            Batch(
                obs=zeros,
                act=zeros,
                rew=rollout.reward[t],
                terminated=done,
                truncated=zeros.astype(bool),
                done=done,
                obs_next=zeros,
                info=Batch(),
            )
        )
    indices = buffer.sample_indices(0)
    return buffer, buffer[indices], indices


def tianshou() -> dict:
    """The functions that its algorithms call, on a filled buffer."""
    from tianshou.algorithm.algorithm_base import Algorithm

    def gae(rollout: Rollout) -> Callable[[], object]:
        buffer, batch, indices = _tianshou_buffer(rollout)
        value, following = _env_major(rollout.value[:-1]), _env_major(rollout.value[1:])
        return lambda: Algorithm.compute_episodic_return(
            batch, buffer, indices, v_s_=following, v_s=value, gamma=GAMMA, gae_lambda=LAMBDA
        )[1]

    def nstep(rollout: Rollout) -> Callable[[], object]:
        buffer, batch, indices = _tianshou_buffer(rollout)
        following = torch.from_numpy(_env_major(rollout.value[1:]))

        def value_of(_: Any, index: np.ndarray) -> torch.Tensor:
            return following[index]

        return lambda: Algorithm.compute_nstep_return(batch, buffer, indices, value_of, GAMMA, NSTEP).returns

    return cases({'gae': gae, 'nstep5': nstep}, _time_major)


def tianshou_kernel() -> dict:
    """Its compiled functions alone, with indices and masks ready made."""
    from tianshou.algorithm import algorithm_base

    kernel = getattr(algorithm_base, '_gae', None) or algorithm_base._gae_return

    def gae(rollout: Rollout) -> Callable[[], object]:
        end = rollout.done.copy()
        end[-1] = True
        value, reward, end = (_env_major(x) for x in (rollout.value[:-1], rollout.reward, end))
        following = _env_major(rollout.value[1:] * ~rollout.done)
        return lambda: kernel(value, following, reward, end, GAMMA, LAMBDA)

    def nstep(rollout: Rollout) -> Callable[[], object]:
        end, steps = rollout.done.copy(), np.arange(rollout.steps * rollout.envs)
        end[-1] = True
        reward, end, done = (_env_major(x) for x in (rollout.reward, end, rollout.done))
        following, indices = _env_major(rollout.value[1:]), [steps]
        for _ in range(NSTEP - 1):
            indices.append(np.where(end[indices[-1]], indices[-1], indices[-1] + 1))
        targets = (following * ~done)[indices[-1]].reshape(-1, 1)
        stacked = np.stack(indices)
        return lambda: algorithm_base._nstep_return(reward, end, targets, stacked, GAMMA, NSTEP)

    return cases({'gae': gae, 'nstep5': nstep}, _time_major)


def sb3() -> dict:
    """Its rollout buffer."""
    from gymnasium import spaces
    from stable_baselines3.common.buffers import RolloutBuffer

    def gae(rollout: Rollout) -> Callable[[], object]:
        space = spaces.Box(-1.0, 1.0, (1,))
        buffer = RolloutBuffer(rollout.steps, space, space, gae_lambda=LAMBDA, gamma=GAMMA, n_envs=rollout.envs)
        buffer.rewards, buffer.values = rollout.reward, rollout.value[:-1]
        buffer.episode_starts = np.concatenate([np.zeros((1, rollout.envs)), rollout.done[:-1]]).astype(np.float32)
        last, done = torch.from_numpy(rollout.value[-1]), rollout.done[-1]

        def compute() -> object:
            buffer.compute_returns_and_advantage(last, done)
            return buffer.advantages

        return compute

    return cases({'gae': gae})


def torchrl() -> dict:
    """Its functional forms, the vectorised one for GAE."""
    from torchrl.objectives.value import functional

    def columns(rollout: Rollout, *names: str) -> list[torch.Tensor]:
        return [torch.from_numpy(np.ascontiguousarray(getattr(rollout, name).T)).unsqueeze(-1) for name in names]

    def gae(rollout: Rollout) -> Callable[[], object]:
        value, reward, done = columns(rollout, 'value', 'reward', 'done')
        now, following = value[:, :-1].contiguous(), value[:, 1:].contiguous()
        return lambda: functional.vec_generalized_advantage_estimate(GAMMA, LAMBDA, now, following, reward, done)[0]

    def vtrace(rollout: Rollout) -> Callable[[], object]:
        value, reward, done, log_pi, log_mu = columns(rollout, 'value', 'reward', 'done', 'log_pi', 'log_mu')
        now, following = value[:, :-1].contiguous(), value[:, 1:].contiguous()
        return lambda: functional.vtrace_advantage_estimate(
            GAMMA, log_pi, log_mu, now, following, reward, done, time_dim=-2
        )[1]

    return cases({'gae': gae, 'vtrace': vtrace}, _time_major)
