"""Inputs of the return benchmarks, the loops that everybody writes first, and the check that all results agree."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
from clock import Clock

GAMMA, LAMBDA, NSTEP = 0.99, 0.95, 5
SIZES = {'128x8': (128, 8), '2048x1': (2048, 1), '512x256': (512, 256)}


class Rollout:
    """A rollout of T steps in B envs whose episodes last 100 steps on average. NumPy columns are ``(T, B)`` float32."""

    def __init__(self, steps: int, envs: int) -> None:
        rng = np.random.default_rng(0)
        self.steps, self.envs = steps, envs
        self.value = rng.normal(size=(steps + 1, envs)).astype(np.float32)
        self.reward = rng.normal(size=(steps, envs)).astype(np.float32)
        self.done = rng.random((steps, envs)) < 0.01
        self.log_pi = rng.normal(size=(steps, envs)).astype(np.float32) * 0.2
        self.log_mu = rng.normal(size=(steps, envs)).astype(np.float32) * 0.2

    def tensors(self, *names: str) -> list[torch.Tensor]:
        return [torch.from_numpy(getattr(self, name)) for name in names]

    @cached_property
    def expected(self) -> dict[str, np.ndarray]:
        """The results in double precision, by loops."""
        keep, value = 1.0 - self.done, self.value.astype(np.float64)
        delta = self.reward + GAMMA * keep * value[1:] - value[:-1]
        rho = np.minimum(np.exp(self.log_pi.astype(np.float64) - self.log_mu), 1.0)
        gae, vtrace, nstep = np.zeros_like(delta), np.zeros_like(delta), np.zeros_like(delta)
        for t in reversed(range(self.steps)):
            after = t + 1 < self.steps
            gae[t] = delta[t] + GAMMA * LAMBDA * keep[t] * (gae[t + 1] if after else 0.0)
            vtrace[t] = rho[t] * (delta[t] + GAMMA * keep[t] * (vtrace[t + 1] if after else 0.0))
            alive, factor = np.ones(self.envs), 1.0
            for k in range(t, min(t + NSTEP, self.steps)):
                nstep[t] += alive * factor * self.reward[k]
                alive, factor = alive * keep[k], factor * GAMMA
            nstep[t] += alive * factor * value[k + 1]
        return {'gae': gae, 'nstep5': nstep, 'vtrace': vtrace + value[:-1]}


def cases(jobs: dict[str, Callable[[Rollout], Callable[[], object]]], result: Callable = lambda x, rollout: x) -> dict:
    """
    Cases from jobs. A job prepares one rollout and returns what is timed; ``result`` turns its answer into a (T, B)
    array, which must agree with the loops.
    """
    table = {}
    for job, prepare in jobs.items():
        for size, shape in SIZES.items():
            table[f'{job}_{size}'] = _case(job, prepare, shape, result)
    return table


def _case(job: str, prepare: Callable, shape: tuple[int, int], result: Callable) -> Callable[[Clock], int]:
    def case(clock: Clock) -> int:
        rollout = Rollout(*shape)
        timed = prepare(rollout)
        answer = np.asarray(result(timed(), rollout)).reshape(shape)
        difference = np.abs(answer - rollout.expected[job]).max()
        assert difference < 1e-3, f'{job}: differs from the loop by {difference}'
        return clock.repeat(timed)

    return case


def naive_gae(rollout: Rollout) -> Callable[[], torch.Tensor]:
    value, reward, done = rollout.tensors('value', 'reward', 'done')

    def loop() -> torch.Tensor:
        keep, adv, last = 1.0 - done.float(), torch.zeros_like(reward), torch.zeros_like(reward[0])
        for t in reversed(range(reward.shape[0])):
            delta = reward[t] + GAMMA * value[t + 1] * keep[t] - value[t]
            adv[t] = last = delta + GAMMA * LAMBDA * keep[t] * last
        return adv

    return loop


def naive_nstep(rollout: Rollout) -> Callable[[], torch.Tensor]:
    value, reward, done = rollout.tensors('value', 'reward', 'done')

    def loop() -> torch.Tensor:
        keep, result = 1.0 - done.float(), torch.zeros_like(reward)
        for t in range(reward.shape[0]):
            alive, factor = torch.ones_like(reward[0]), 1.0
            for k in range(t, min(t + NSTEP, reward.shape[0])):
                result[t] += alive * factor * reward[k]
                alive, factor = alive * keep[k], factor * GAMMA
            result[t] += alive * factor * value[k + 1]
        return result

    return loop


def naive_vtrace(rollout: Rollout) -> Callable[[], torch.Tensor]:
    value, reward, done, log_pi, log_mu = rollout.tensors('value', 'reward', 'done', 'log_pi', 'log_mu')

    def loop() -> torch.Tensor:
        discount, rho = GAMMA * (1.0 - done.float()), (log_pi - log_mu).exp().clamp(max=1.0)
        delta = rho * (reward + discount * value[1:] - value[:-1])
        target, last = value[:-1].clone(), torch.zeros_like(reward[0])
        for t in reversed(range(reward.shape[0])):
            last = delta[t] + discount[t] * rho[t] * last
            target[t] += last
        after = torch.cat([target[1:], value[-1:]])
        adv = rho * (reward + discount * after - value[:-1])
        return target + 0.0 * adv[:1]

    return loop


CASES = cases({'gae': naive_gae, 'nstep5': naive_nstep, 'vtrace': naive_vtrace})
