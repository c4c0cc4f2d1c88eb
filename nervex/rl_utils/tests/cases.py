"""One case for each operator: inputs drawn for a shape, the call, and what the slow reference gives."""

from collections import namedtuple

import numpy as np
import torch

GAMMA, LAMBDA, NSTEP = 0.9, 0.8, 3
# call(*inputs) -> tensor or tuple of tensors; inputs are what the gradient is checked for; expected: arrays in that
# order
# surrogate: where a loss holds parts of itself constant, the same loss with the reference's numbers in their place
Case = namedtuple('Case', ['call', 'inputs', 'expected', 'surrogate'], defaults=(None,))
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Draw:
    """Inputs of one shape. Floats come as tensors of one dtype, ``done`` as bool or in that dtype."""

    def __init__(self, steps, batch, actions, dtype, float_done=False, weighted=True, seed=0):
        self.steps, self.batch, self.actions, self.dtype = steps, batch, actions, dtype
        self.step_batch = (steps, batch)
        self._float_done, self._weighted = float_done, weighted
        self._rng = np.random.default_rng(seed)

    def normal(self, *shape):
        return torch.tensor(self._rng.normal(size=shape), dtype=self.dtype)

    def positive(self, *shape):
        return torch.tensor(self._rng.uniform(0.2, 1.5, size=shape), dtype=self.dtype)

    def action(self, *shape):
        return torch.tensor(self._rng.integers(0, self.actions, size=shape))

    def done(self, *shape):
        done = torch.tensor(self._rng.random(shape) < 0.4)
        return done.to(self.dtype) if self._float_done else done

    def weight(self, *shape):
        weight = self.positive(*shape)
        return weight if self._weighted else None

    def truncated(self, done):
        cut = torch.tensor(self._rng.random(done.shape) < 0.5)
        return cut & done if done.dtype is torch.bool else cut * done

    def rollout(self):
        """value, reward, done, truncated, next_value"""
        value = self.normal(self.steps + 1, self.batch)
        reward, following = self.normal(*self.step_batch), self.normal(*self.step_batch)
        done = self.done(*self.step_batch)
        return value, reward, done, self.truncated(done), following


def arrays(*tensors):
    return [None if t is None else t.double().numpy() if t.is_floating_point() else t.numpy() for t in tensors]


def q_fields(d):
    q, next_q = d.normal(d.batch, d.actions), d.normal(d.batch, d.actions)
    action, next_action = d.action(d.batch), d.action(d.batch)
    return q, next_q, action, next_action, d.normal(NSTEP, d.batch), d.done(d.batch), d.weight(d.batch)


def taken(values, action):
    return values[np.arange(len(action)), action]
