"""Cases of the temporal-difference errors."""

import numpy as np
import torch

from nervex import rl_utils as rl
from nervex.rl_utils.tests import references as ref
from nervex.rl_utils.tests.cases import GAMMA, NSTEP, Case, arrays, case, q_fields, taken


@case
def q_1step_td_error(d):
    q, next_q, action, next_action, reward, done, weight = q_fields(d)
    Q, NQ, A, NA, R, D, W = arrays(q, next_q, action, next_action, reward, done, weight)
    expected = ref.td(taken(Q, A), ref.nstep_target(R[:1], taken(NQ, NA), D, GAMMA), W)[:1]
    fields = (next_q, action, next_action, reward[0], done, weight)
    return Case(lambda q: rl.q_1step_td_error(rl.q_1step_td_data(q, *fields), GAMMA), (q,), expected)


@case
def q_nstep_td_error(d):
    q, *fields = q_fields(d)
    value_gamma = d.positive(d.batch)
    Q, NQ, A, NA, R, D, W, VG = arrays(q, *fields, value_gamma)
    expected = ref.td(taken(Q, A), ref.nstep_target(R, taken(NQ, NA), D, GAMMA, VG), W)
    call = lambda q: rl.q_nstep_td_error(rl.q_nstep_td_data(q, *fields), GAMMA, NSTEP, value_gamma=value_gamma)  # noqa: E731
    return Case(call, (q,), expected)


@case
def q_nstep_td_error_with_rescale(d):
    q, *fields = q_fields(d)
    Q, NQ, A, NA, R, D, W = arrays(q, *fields)
    next_value = [ref.unsquash(x) for x in taken(NQ, NA)]
    target = [ref.squash(x) for x in ref.nstep_target(R, next_value, D, GAMMA)]
    call = lambda q: rl.q_nstep_td_error_with_rescale(rl.q_nstep_td_data(q, *fields), GAMMA, NSTEP)  # noqa: E731
    return Case(call, (q,), ref.td(taken(Q, A), target, W))


@case
def multi_discrete_td_error(d):
    first, second = q_fields(d), q_fields(d)
    results = []
    for q, next_q, action, next_action, *_ in (first, second):
        Q, NQ, A, NA, R, D, W = arrays(q, next_q, action, next_action, *first[4:])
        results.append(ref.td(taken(Q, A), ref.nstep_target(R, taken(NQ, NA), D, GAMMA), W))
    expected = ((results[0][0] + results[1][0]) / 2, (abs(results[0][1]) + abs(results[1][1])) / 2)
    others = [list(pair) for pair in zip(first[1:4], second[1:4])]

    def call(*q):
        data = rl.q_nstep_td_data(list(q), others[0], torch.stack(others[1], 1), others[2], *first[4:])
        return rl.multi_discrete_td_error(data, GAMMA, nstep=NSTEP)

    return Case(call, (first[0], second[0]), expected)


def dist_fields(d, atoms=7):
    logit, next_logit = d.normal(d.batch, d.actions, atoms), d.normal(d.batch, d.actions, atoms)
    return torch.softmax(logit, -1), torch.softmax(next_logit, -1)


@case
def dist_1step_td_error(d):
    _, _, action, next_action, reward, done, weight = q_fields(d)
    dist, next_dist = dist_fields(d)
    P, NP, A, NA, R, D, W = arrays(dist, next_dist, action, next_action, reward[:1], done, weight)
    expected = ref.distributional(P, NP, A, NA, R, D, GAMMA, -1.0, 2.0, weight=W)[:1]
    fields = (next_dist, action, next_action, reward[0], done, weight)
    call = lambda dist: rl.dist_1step_td_error(rl.dist_1step_td_data(dist, *fields), GAMMA, -1.0, 2.0, 7)  # noqa: E731
    return Case(call, (dist,), expected)


@case
def dist_nstep_td_error(d):
    _, _, *fields = q_fields(d)
    dist, next_dist = dist_fields(d)
    value_gamma = d.positive(d.batch)
    P, NP, A, NA, R, D, W, VG = arrays(dist, next_dist, *fields, value_gamma)
    expected = ref.distributional(P, NP, A, NA, R, D, GAMMA, -3.0, 3.0, VG, W)

    def call(dist):
        data = rl.dist_nstep_td_data(dist, next_dist, *fields)
        return rl.dist_nstep_td_error(data, GAMMA, -3.0, 3.0, 7, NSTEP, value_gamma)

    return Case(call, (dist,), expected)


@case
def iqn_nstep_td_error(d):
    _, _, action, next_action, reward, done, weight = q_fields(d)
    q, next_q, fractions = d.normal(4, d.batch, d.actions), d.normal(5, d.batch, d.actions), d.positive(4, d.batch) / 2
    Q, NQ, F, A, NA, R, D, W = arrays(q, next_q, fractions, action, next_action, reward, done, weight)
    value = [taken(x, A) for x in Q]
    target = [ref.nstep_target(R, taken(x, NA), D, GAMMA) for x in NQ]
    expected = ref.quantile(np.transpose(value), np.transpose(target), F.T, 0.7, W)

    def call(q):
        quantiles = fractions.reshape(-1, 1)
        data = rl.iqn_nstep_td_data(q, next_q, action, next_action, reward, done, quantiles, weight)
        return rl.iqn_nstep_td_error(data, GAMMA, NSTEP, kappa=0.7)

    return Case(call, (q,), expected)


@case
def qrdqn_nstep_td_error(d):
    _, _, action, next_action, reward, done, weight = q_fields(d)
    q, next_q = d.normal(d.batch, d.actions, 4), d.normal(d.batch, d.actions, 4)
    tau = torch.tensor([0.1, 0.4, 0.6, 0.9], dtype=d.dtype)
    value_gamma = d.positive(d.batch)
    Q, NQ, F, A, NA, R, D, W, VG = arrays(q, next_q, tau, action, next_action, reward, done, weight, value_gamma)
    target = [ref.nstep_target(R, taken(NQ[:, :, i], NA), D, GAMMA, VG) for i in range(4)]
    expected = ref.quantile(taken(Q, A), np.transpose(target), [F] * d.batch, 1.0, W)

    def call(q):
        data = rl.qrdqn_nstep_td_data(q, next_q, action, next_action, reward, done, tau, weight)
        return rl.qrdqn_nstep_td_error(data, GAMMA, NSTEP, value_gamma)

    return Case(call, (q,), expected)


@case
def v_1step_td_error(d):
    v, next_v, reward = d.normal(d.batch), d.normal(d.batch), d.normal(d.batch)
    done, weight = d.done(d.batch), d.weight(d.batch)
    V, NV, R, D, W = arrays(v, next_v, reward, done, weight)
    expected = ref.td(V, ref.nstep_target(R[None], NV, D, GAMMA), W)
    fields = (next_v, reward, done, weight)
    return Case(lambda v: rl.v_1step_td_error(rl.v_1step_td_data(v, *fields), GAMMA), (v,), expected)


@case
def v_nstep_td_error(d):
    v, next_v, reward = d.normal(d.batch), d.normal(d.batch), d.normal(NSTEP, d.batch)
    done, weight, value_gamma = d.done(d.batch), d.weight(d.batch), d.positive(d.batch)
    V, NV, R, D, W, VG = arrays(v, next_v, reward, done, weight, value_gamma)
    expected = ref.td(V, ref.nstep_target(R, NV, D, GAMMA, VG), W)
    fields = (next_v, reward, done, weight, value_gamma)
    return Case(lambda v: rl.v_nstep_td_error(rl.v_nstep_td_data(v, *fields), GAMMA, NSTEP), (v,), expected)


@case
def soft_q_nstep_td_error(d):
    q, next_q, action, _, reward, done, weight = q_fields(d)
    Q, NQ, A, R, D, W = arrays(q, next_q, action, reward, done, weight)
    policy = [ref.softmax(row / 0.5) for row in NQ]
    value = [sum(p * (x - 0.5 * np.log(p)) for p, x in zip(*pair)) for pair in zip(policy, NQ)]
    expected = ref.td(taken(Q, A), ref.nstep_target(R, value, D, GAMMA), W)
    fields = (next_q, action, reward, done, weight)
    call = lambda q: rl.soft_q_nstep_td_error(rl.soft_q_nstep_td_data(q, *fields), GAMMA, 0.5, NSTEP)  # noqa: E731
    return Case(call, (q,), expected)


@case
def soft_value(d):
    q, logit = d.normal(d.batch, d.actions), d.normal(d.batch, d.actions)
    Q, L = arrays(q, logit)
    policy = [ref.softmax(row) for row in L]
    expected = [sum(p * (x - 0.3 * np.log(p)) for p, x in zip(*pair)) for pair in zip(policy, Q)]
    return Case(lambda q, logit: rl.soft_value(q, 0.3, logit), (q, logit), (expected,))


@case
def nstep_return(d):
    reward, value, done = d.normal(NSTEP, d.batch), d.normal(d.batch), d.done(d.batch)
    expected = ref.nstep_target(*arrays(reward, value, done), GAMMA)
    call = lambda reward, value: rl.nstep_return(rl.nstep_return_data(reward, value, done), GAMMA, NSTEP)  # noqa: E731
    return Case(call, (reward, value), (expected,))
