"""Cases of returns over rollouts and of policy losses."""

import numpy as np
import torch

from nervex import rl_utils as rl
from nervex.rl_utils.tests import references as ref
from nervex.rl_utils.tests.cases import GAMMA, LAMBDA, NSTEP, Case, arrays, case


@case
def rollout_nstep_return(d):
    value, reward, done, truncated, following = d.rollout()
    table = ref.steps_of(*arrays(value, reward, done, truncated, following))

    def call(reward, following):
        return rl.rollout_nstep_return(rl.rollout_nstep_data(value, reward, done, truncated, following), GAMMA, NSTEP)

    return Case(call, (reward, following), (ref.rollout_nstep(table, GAMMA, NSTEP),))


@case
def gae(d):
    value, reward, done, _, _ = d.rollout()
    table = ref.steps_of(*arrays(value, reward, done))
    call = lambda value, reward: rl.gae(rl.gae_data(value, reward, done), GAMMA, LAMBDA)  # noqa: E731
    return Case(call, (value, reward), (ref.gae(table, GAMMA, LAMBDA),))


@case
def gae_with_time_limits(d):
    value, reward, done, truncated, following = d.rollout()
    table = ref.steps_of(*arrays(value, reward, done, truncated, following))

    def call(value, following):
        return rl.gae(rl.gae_data(value[:-1], reward, done, truncated, following), GAMMA, LAMBDA)

    return Case(call, (value, following), (ref.gae(table, GAMMA, LAMBDA),))


@case
def td_lambda_error(d):
    value, reward, done, truncated, following = d.rollout()
    weight = d.weight(*d.step_batch)
    V, R, D, C, F, W = arrays(value, reward, done, truncated, following, weight)
    errors = ref.lambda_return(ref.steps_of(V, R, D, C, F), GAMMA, LAMBDA) - V[:-1]
    fields = (reward, weight, done, truncated, following)
    call = lambda value: rl.td_lambda_error(rl.td_lambda_data(value, *fields), GAMMA, LAMBDA)  # noqa: E731
    return Case(call, (value,), (0.5 * ref.mean(errors**2, W),))


@case
def generalized_lambda_returns(d):
    value, reward, done, _, _ = d.rollout()
    gammas, lambdas = d.positive(*d.step_batch) / 2, d.positive(*d.step_batch) / 2
    V, R, D, G, L = arrays(value, reward, done, gammas, lambdas)
    expected = ref.lambda_return(ref.steps_of(V, R, D), G, L)
    call = lambda value, reward: rl.generalized_lambda_returns(value, reward, gammas, lambdas, done)  # noqa: E731
    return Case(call, (value, reward), (expected,))


@case
def upgo_returns(d):
    value, reward, done, truncated, following = d.rollout()
    table = ref.steps_of(*arrays(value, reward, done, truncated, following))
    call = lambda reward: rl.upgo_returns(reward, value, GAMMA, done, truncated, following)  # noqa: E731
    return Case(call, (reward,), (ref.upgo(table, GAMMA),))


@case
def upgo_loss(d):
    value, reward, done, _, _ = d.rollout()
    logit, action = d.normal(*d.step_batch, 2, d.actions), d.action(*d.step_batch, 2)
    rho, mask = d.positive(*d.step_batch), d.done(*d.step_batch, 2)
    V, R, D, L, A, P, M = arrays(value, reward, done, logit, action, rho, mask)
    adv = P * (ref.upgo(ref.steps_of(V, R, D), GAMMA) - V[:-1])
    expected = -ref.mean(adv * (ref.log_prob(L, A) * M).sum(-1))
    call = lambda logit: rl.upgo_loss(logit, rho, action, reward, value, mask, GAMMA, done)  # noqa: E731
    return Case(call, (logit,), (expected,))


def off_policy_fields(d):
    target, behaviour = d.normal(*d.step_batch, d.actions), d.normal(*d.step_batch, d.actions)
    return target, behaviour, d.action(*d.step_batch)


@case
def compute_importance_weights(d):
    target, behaviour, action = off_policy_fields(d)
    T, B, A = arrays(target, behaviour, action)
    expected = np.exp(ref.log_prob(T, A) - ref.log_prob(B, A))
    call = lambda target: rl.compute_importance_weights(target, behaviour, action, requires_grad=True)  # noqa: E731
    return Case(call, (target,), (expected,))


CLIPS = (1.2, 0.9, 1.1)


@case
def vtrace_error(d):
    target, behaviour, action = off_policy_fields(d)
    rollout, weight = d.rollout(), d.weight(*d.step_batch)
    V, R, D, C, F, W, T, B, A = arrays(*rollout, weight, target, behaviour, action)
    logp = ref.log_prob(T, A)
    vs, adv = ref.vtrace(np.exp(logp - ref.log_prob(B, A)), ref.steps_of(V, R, D, C, F), GAMMA, LAMBDA, *CLIPS)
    expected = (-ref.mean(logp * adv, W), ref.mean((vs - V[:-1]) ** 2, W), ref.mean(ref.entropy(T), W))
    reward, *rest = rollout[1:]

    def call(target, value):
        data = rl.vtrace_data(target, behaviour, action, value, reward, weight, *rest)
        return rl.vtrace_error(data, GAMMA, LAMBDA, *CLIPS)

    def surrogate(target, value):
        distribution, w = torch.distributions.Categorical(logits=target), 1.0 if weight is None else weight
        policy = -(w * distribution.log_prob(action) * torch.tensor(adv)).mean()
        return policy, (w * (torch.tensor(vs) - value[:-1]) ** 2).mean(), (w * distribution.entropy()).mean()

    return Case(call, (target, rollout[0]), expected, surrogate)


@case
def vtrace_parts(d):
    value, reward, _, _, _ = d.rollout()
    rho, c, pg = d.positive(*d.step_batch), d.positive(*d.step_batch), d.positive(*d.step_batch)
    V, R, P, K, G = arrays(value, reward, rho, c, pg)
    expected = V[:-1].copy()
    for t in reversed(range(d.steps)):
        after = expected[t + 1] - V[t + 1] if t < d.steps - 1 else 0.0
        expected[t] += P[t] * (R[t] + GAMMA * V[t + 1] - V[t]) + GAMMA * LAMBDA * K[t] * after
    after = np.concatenate([expected[1:], V[-1:]])

    def call(value, rho):
        vs = rl.vtrace_nstep_return(rho, c, reward, value, GAMMA, LAMBDA)
        return vs, rl.vtrace_advantage(pg, reward, torch.cat([vs[1:], value[-1:]]), value[:-1], GAMMA)

    return Case(call, (value, rho), (expected, G * (R + GAMMA * after - V[:-1])))


@case
def a2c_error(d):
    logit, action = d.normal(d.batch, d.actions), d.action(d.batch)
    value, adv, return_, weight = d.normal(d.batch), d.normal(d.batch), d.normal(d.batch), d.weight(d.batch)
    L, A, V, ADV, R, W = arrays(logit, action, value, adv, return_, weight)
    expected = (-ref.mean(ref.log_prob(L, A) * ADV, W), ref.mean((R - V) ** 2, W), ref.mean(ref.entropy(L), W))
    fields = (adv, return_, weight)
    return Case(lambda logit, value: rl.a2c_error(rl.a2c_data(logit, action, value, *fields)), (logit, value), expected)


@case
def a2c_error_continuous(d):
    mu, sigma, action = d.normal(d.batch, 2), d.positive(d.batch, 2), d.normal(d.batch, 2)
    value, adv, return_, weight = d.normal(d.batch), d.normal(d.batch), d.normal(d.batch), d.weight(d.batch)
    M, S, A, V, ADV, R, W = arrays(mu, sigma, action, value, adv, return_, weight)
    logp, entropy = ref.gaussian_log_prob(M, S, A), ref.gaussian_entropy(S)
    expected = (-ref.mean(logp * ADV, W), ref.mean((R - V) ** 2, W), ref.mean(entropy, W))

    def call(mu, sigma):
        return rl.a2c_error_continuous(rl.a2c_data((mu, sigma), action, value, adv, return_, weight))

    return Case(call, (mu, sigma), expected)


def value_fields(d):
    return d.normal(d.batch), d.normal(d.batch), d.normal(d.batch), d.normal(d.batch), d.weight(d.batch)


@case
def ppo_error(d):
    logit, old, action = d.normal(d.batch, d.actions), d.normal(d.batch, d.actions), d.action(d.batch)
    value, value_old, adv, return_, weight = value_fields(d)
    L, LO, A, V, VO, ADV, R, W = arrays(logit, old, action, value, value_old, adv, return_, weight)
    policy, kl, clipped = ref.ppo_policy(ref.log_prob(L, A), ref.log_prob(LO, A), ADV, 0.2, 1.5, W)
    expected = (policy, ref.ppo_value(V, VO, R, 0.2, W), ref.mean(ref.entropy(L), W), kl, clipped)

    def call(logit, value):
        data = rl.ppo_data(logit, old, action, value, value_old, adv, return_, weight)
        loss, info = rl.ppo_error(data, 0.2, dual_clip=1.5)
        return (*loss, *info)

    return Case(call, (logit, value), expected)


@case
def ppo_error_continuous(d):
    mu, sigma = d.normal(d.batch, 2), d.positive(d.batch, 2)
    mu_old, sigma_old = d.normal(d.batch, 2), d.positive(d.batch, 2)
    action, (value, value_old, adv, return_, weight) = d.normal(d.batch, 2), value_fields(d)
    M, S, MO, SO, A, V, VO, ADV, R, W = arrays(
        mu, sigma, mu_old, sigma_old, action, value, value_old, adv, return_, weight
    )
    logp, logp_old = ref.gaussian_log_prob(M, S, A), ref.gaussian_log_prob(MO, SO, A)
    policy, kl, clipped = ref.ppo_policy(logp, logp_old, ADV, 0.3, None, W)
    expected = (policy, ref.ppo_value(V, VO, R, None, W), ref.mean(ref.gaussian_entropy(S), W), kl, clipped)

    def call(mu, sigma, value):
        old = {'mu': mu_old, 'sigma': sigma_old}
        data = rl.ppo_data((mu, sigma), old, action, value, value_old, adv, return_, weight)
        loss, info = rl.ppo_error_continuous(data, 0.3, use_value_clip=False)
        return (*loss, *info)

    return Case(call, (mu, sigma, value), expected)


@case
def ppg_joint_error(d):
    logit, old, action = d.normal(d.batch, d.actions), d.normal(d.batch, d.actions), d.action(d.batch)
    value, value_old, _, return_, weight = value_fields(d)
    L, LO, V, VO, R, W = arrays(logit, old, value, value_old, return_, weight)
    kl = [sum(p * np.log(p / q) for p, q in zip(ref.softmax(o), ref.softmax(n))) for o, n in zip(LO, L)]
    expected = (ref.ppo_value(V, VO, R, 0.2, W), ref.mean(kl, W))

    def call(logit, value):
        return rl.ppg_joint_error(rl.ppg_data(logit, old, action, value, value_old, return_, weight))

    return Case(call, (logit, value), expected)


def coma_case(d, with_done):
    shape = (*d.step_batch, 2, d.actions)
    logit, q, target_q, action = d.normal(*shape), d.normal(*shape), d.normal(*shape), d.action(*shape[:3])
    reward, weight = d.normal(*d.step_batch), d.weight(*shape[:3])
    done = d.done(*d.step_batch) if with_done else None
    L, A, Q, TQ, R, W, D = arrays(logit, action, q, target_q, reward, weight, done)
    expected = ref.coma(L, A, Q, TQ, R, GAMMA, LAMBDA, D, W)

    def call(logit, q):
        return rl.coma_error(rl.coma_data(logit, action, q, target_q, reward, weight, done), GAMMA, LAMBDA)

    def surrogate(logit, q_value):
        distribution, w = torch.distributions.Categorical(logits=logit), 1.0 if weight is None else weight
        adv = ((torch.nn.functional.one_hot(action, d.actions) - distribution.probs) * q).sum(-1).detach()
        policy = -(w * distribution.log_prob(action) * adv).mean()
        targets, counted = ref.coma_targets(A, TQ, R, GAMMA, LAMBDA, D)
        error = (torch.tensor(targets) - q_value.gather(-1, action.unsqueeze(-1)).squeeze(-1)) ** 2
        critic = (w * error * torch.tensor(counted)).sum() / max(counted.sum(), 1)
        return policy, critic, (w * distribution.entropy()).mean()

    return Case(call, (logit, q), expected, surrogate)


@case
def coma_error(d):
    return coma_case(d, False)


@case
def coma_error_with_ends(d):
    return coma_case(d, True)


@case
def value_rescale(d):
    x = 30 * d.normal(d.batch)
    (X,) = arrays(x)
    expected = ([ref.squash(v) for v in X], [ref.unsquash(v) for v in X])
    return Case(lambda x: (rl.value_transform(x), rl.value_inv_transform(x)), (x,), expected)
