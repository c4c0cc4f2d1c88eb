"""
Fused numba kernels of the recursions: one pass over (T, B) memory, no temporaries. Optional arguments may be None;
numba compiles one version for each combination of types, and keeps it on disk.
"""

import numpy as np
from numba import njit

# 'contract' lets a product and a sum become one instruction; nothing is assumed about infinities or NaN.
_WIDE = 64  # from so many columns on, a row is worth a vector loop of its own
_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
_compiled = njit(fastmath={'contract'}, cache=True, nogil=True, error_model='numpy')
_inlined = njit(fastmath={'contract'}, cache=True, nogil=True, error_model='numpy', inline='always')


@_inlined
def _flat(array):
    return array.reshape(-1)


@_inlined
def _ended(done, i, one):
    """0 where the episode ended after the step, else 1; ``done`` may be bool or float."""
    return one if done is None else one - done[i]


@_inlined
def _bootstraps(done, truncated, i, one):
    """0 where the episode terminated, else 1."""
    if done is None:
        return one
    if truncated is None:
        return one - done[i]
    return max(one - done[i], one * truncated[i])


@_compiled
def _column(a, b, carry, y):
    """
    The scan of one column. Four steps are composed into one, so that the chain of dependent operations is a quarter as
    long. Unsigned indices spare the check for negative ones.
    """
    t = np.uint64(b.shape[0])
    for _ in range(b.shape[0] // 4):
        t -= _4
        a0, a1, a2, a3 = a[t], a[t + _1], a[t + _2], a[t + _3]
        b0, b1, b2, b3 = b[t], b[t + _1], b[t + _2], b[t + _3]
        pair, pair_a = b2 + a2 * b3, a2 * a3
        first, first_a = b0 + a0 * b1, a0 * a1
        four, four_a = first + first_a * pair, first_a * pair_a
        middle = pair + pair_a * carry
        y[t + _3] = b3 + a3 * carry
        y[t + _2] = middle
        y[t + _1] = b1 + a1 * middle
        carry = four + four_a * carry
        y[t] = carry
    for i in range(b.shape[0] % 4 - 1, -1, -1):
        carry = b[i] + a[i] * carry
        y[i] = carry


@_compiled
def scan(a, b, init, y):
    """y[t] = b[t] + a[t] * y[t + 1]; ``init`` (B, ) or None is 0."""
    steps, width = b.shape
    carry = np.zeros(width, b.dtype)
    if init is not None:
        carry[:] = init
    if width == 1:
        _column(a[:, 0], b[:, 0], carry[0], y[:, 0])
        return
    for t in range(steps - 1, -1, -1):
        for k in range(width):
            carry[k] = b[t, k] + a[t, k] * carry[k]
            y[t, k] = carry[k]


@_compiled
def _errors(value, reward, done, truncated, next_value, discount, decay, delta, keep):
    """TD errors and factors of the recursion in one sweep over memory."""
    width, count = reward.shape[1], reward.size
    one = reward.dtype.type(1)
    flat_reward, flat_value, flat_delta, flat_keep = _flat(reward), _flat(value), _flat(delta), _flat(keep)
    flat_next = _flat(value)[width:] if next_value is None else _flat(next_value)
    flat_done = None if done is None else _flat(done)
    flat_truncated = None if truncated is None else _flat(truncated)
    for i in range(count):
        boots = discount * _bootstraps(flat_done, flat_truncated, i, one)
        flat_delta[i] = flat_reward[i] - flat_value[i] + boots * flat_next[i]
        flat_keep[i] = decay * _ended(flat_done, i, one)


@_compiled
def gae(value, reward, done, truncated, next_value, gamma, trace, adv):
    """Advantages; ``trace`` is gamma * lambda. ``next_value`` None takes the next row of ``value``."""
    steps, width = reward.shape
    one, discount, decay = reward.dtype.type(1), reward.dtype.type(gamma), reward.dtype.type(trace)
    if width < _WIDE:
        delta, keep = np.empty((steps, width), reward.dtype), np.empty((steps, width), reward.dtype)
        _errors(value, reward, done, truncated, next_value, discount, decay, delta, keep)
        scan(keep, delta, None, adv)
        return
    carry = np.zeros(width, reward.dtype)
    for t in range(steps - 1, -1, -1):
        row_done = None if done is None else done[t]
        row_truncated = None if truncated is None else truncated[t]
        for k in range(width):
            following = value[t + 1, k] if next_value is None else next_value[t, k]
            boots = discount * _bootstraps(row_done, row_truncated, k, one)
            delta_k = reward[t, k] - value[t, k] + boots * following
            carry[k] = delta_k + decay * _ended(row_done, k, one) * carry[k]
            adv[t, k] = carry[k]


@_compiled
def rollout_nstep(value, reward, done, truncated, next_value, gamma, nstep, result):
    """n-step returns of all steps: all are lengthened by one step at a time."""
    steps, width = reward.shape
    one, discount = reward.dtype.type(1), reward.dtype.type(gamma)
    added, factor = np.empty(reward.size, reward.dtype), np.empty(reward.size, reward.dtype)
    flat_reward, flat = _flat(reward), _flat(result)
    flat_next = _flat(value)[width:] if next_value is None else _flat(next_value)
    flat_done = None if done is None else _flat(done)
    flat_truncated = None if truncated is None else _flat(truncated)
    for i in range(reward.size):
        boot = discount * _bootstraps(flat_done, flat_truncated, i, one) * flat_next[i]
        goes_on = _ended(flat_done, i, one)
        flat[i] = flat_reward[i] + boot
        added[i] = flat_reward[i] + (one - goes_on) * boot
        factor[i] = discount * goes_on
    for _ in range(min(nstep, steps) - 1):
        for i in range((steps - 1) * width):
            flat[i] = added[i] + factor[i] * flat[i + width]


@_compiled
def vtrace(value, reward, done, truncated, next_value, rho, gamma, trace, rho_max, c_max, pg_max, adv, return_):
    """V-trace value targets and advantages of the policy gradient."""
    steps, width = reward.shape
    number = reward.dtype.type
    one, discount, decay = number(1), number(gamma), number(trace)
    rho_top, c_top, pg_top = number(rho_max), number(c_max), number(pg_max)
    delta, keep = np.empty((steps, width), reward.dtype), np.empty((steps, width), reward.dtype)
    _errors(value, reward, done, truncated, next_value, discount, decay, delta, keep)
    flat_rho, flat_delta, flat_keep, flat_value = _flat(rho), _flat(delta), _flat(keep), _flat(value)
    for i in range(reward.size):
        flat_delta[i] *= min(flat_rho[i], rho_top)
        flat_keep[i] *= min(flat_rho[i], c_top)
    scan(keep, delta, None, return_)
    flat_return, flat_adv, flat_reward = _flat(return_), _flat(adv), _flat(reward)
    if next_value is None and rho_max == c_max and rho_max == pg_max and 2 * trace >= gamma and trace > 0:
        inverse = number(gamma / trace)  # the scan has what the advantage needs, times lambda
        for i in range(reward.size):
            flat_adv[i] = flat_delta[i] + inverse * (flat_return[i] - flat_delta[i])
            flat_return[i] += flat_value[i]
        return
    flat_next = _flat(value)[width:] if next_value is None else _flat(next_value)
    flat_done = None if done is None else _flat(done)
    flat_truncated = None if truncated is None else _flat(truncated)
    for i in range(reward.size):
        flat_return[i] += flat_value[i]
    last = (steps - 1) * width
    for i in range(reward.size):
        boots = discount * _bootstraps(flat_done, flat_truncated, i, one)
        after = flat_next[i]
        if i < last and _ended(flat_done, i, one) > 0:
            after = flat_return[i + width]
        flat_adv[i] = min(flat_rho[i], pg_top) * (flat_reward[i] - flat_value[i] + boots * after)
