"""Slow versions of the operators: NumPy in double precision, one number at a time, written from the formulas alone."""

import math

import numpy as np


def mean(terms, weight=None):
    terms = np.asarray(terms, float)
    return float((terms * (1.0 if weight is None else weight)).sum() / terms.size)


def softmax(x):
    p = [math.exp(v - max(x)) for v in x]
    return [v / sum(p) for v in p]


def nstep_target(reward, next_value, done, gamma, value_gamma=None):
    n, batch = reward.shape
    result = np.zeros(batch)
    for b in range(batch):
        for k in range(n):
            result[b] += gamma**k * reward[k, b]
        factor = gamma**n if value_gamma is None else value_gamma[b]
        result[b] += factor * (1 - float(done[b])) * next_value[b]
    return result


def td(value, target, weight=None):
    errors = [target[b] - value[b] for b in range(len(value))]
    return mean([e * e for e in errors], weight), np.array(errors)


def squash(x, eps=1e-2):
    return math.copysign(1, x) * (math.sqrt(abs(x) + 1) - 1) + eps * x


def unsquash(x, eps=1e-2):
    root = (math.sqrt(1 + 4 * eps * (abs(x) + 1 + eps)) - 1) / (2 * eps)
    return math.copysign(1, x) * (root**2 - 1)


def distributional(
    dist, next_dist, action, next_action, reward, done, gamma, v_min, v_max, value_gamma=None, weight=None
):
    batch, _, atoms = dist.shape
    gap = (v_max - v_min) / (atoms - 1)
    losses = []
    for b in range(batch):
        target = np.zeros(atoms)
        for j in range(atoms):
            z = nstep_target(
                reward[:, b : b + 1],
                [v_min + j * gap],
                done[b : b + 1],
                gamma,
                None if value_gamma is None else value_gamma[b : b + 1],
            )[0]
            position = (min(max(z, v_min), v_max) - v_min) / gap
            for i in range(atoms):  # each atom of the support takes 1 minus its distance, if that is positive
                target[i] += max(0.0, 1 - abs(position - i)) * next_dist[b, next_action[b], j]
        losses.append(-sum(target[i] * math.log(dist[b, action[b], i]) for i in range(atoms)))
    return mean(losses, weight), np.array(losses)


def quantile(value, target, fractions, kappa, weight=None):
    """value (B, tau), target (B, tau'), fractions (B, tau)"""
    losses = []
    for b in range(len(value)):
        total = 0.0
        for i, v in enumerate(value[b]):
            for t in target[b]:
                delta = t - v
                huber = 0.5 * delta**2 if abs(delta) <= kappa else kappa * (abs(delta) - 0.5 * kappa)
                total += abs(fractions[b][i] - (1.0 if delta < 0 else 0.0)) * huber / kappa
        losses.append(total / len(target[b]))
    return mean(losses, weight), np.array(losses)


def steps_of(value, reward, done=None, truncated=None, next_value=None):
    """For each step: (reward, value, next value, does it bootstrap, does the recursion go on)"""
    steps, batch = reward.shape
    table = np.zeros((steps, batch, 5))
    for t in range(steps):
        for b in range(batch):
            over = done is not None and bool(done[t, b])
            cut = truncated is not None and bool(truncated[t, b])
            following = value[t + 1, b] if next_value is None else next_value[t, b]
            table[t, b] = reward[t, b], value[t, b], following, not over or cut, not over
    return table


def gae(table, gamma, lambda_):
    steps, batch, _ = table.shape
    adv = np.zeros((steps, batch))
    for b in range(batch):
        for t in range(steps):  # the sum of (gamma lambda)^k delta_{t+k}, up to the end of the episode
            for k in range(t, steps):
                r, v, following, boots, goes_on = table[k, b]
                adv[t, b] += (gamma * lambda_) ** (k - t) * (r + gamma * boots * following - v)
                if not goes_on:
                    break
    return adv


def rollout_nstep(table, gamma, n):
    steps, batch, _ = table.shape
    result = np.zeros((steps, batch))
    for b in range(batch):
        for t in range(steps):
            for k in range(n):
                r, _, following, boots, goes_on = table[t + k, b]
                result[t, b] += gamma**k * r
                if not goes_on or t + k == steps - 1 or k == n - 1:
                    result[t, b] += gamma ** (k + 1) * boots * following
                    break
    return result


def lambda_return(table, gamma, lambda_):
    """gamma and lambda_ may be arrays (T, B)"""
    steps, batch, _ = table.shape
    gamma, lambda_ = np.broadcast_to(gamma, (steps, batch)), np.broadcast_to(lambda_, (steps, batch))

    def of(t, b):
        r, _, following, boots, goes_on = table[t, b]
        after = following if t == steps - 1 or not goes_on else of(t + 1, b)
        return r + gamma[t, b] * boots * ((1 - lambda_[t, b]) * following + lambda_[t, b] * after)

    return np.array([[of(t, b) for b in range(batch)] for t in range(steps)])


def vtrace(rho, table, gamma, lambda_, rho_max, c_max, pg_max):
    """Remark 1 of the paper is the recursion; this is equation 1, the sum of products."""
    steps, batch, _ = table.shape
    targets, adv = np.zeros((steps, batch)), np.zeros((steps, batch))
    for b in range(batch):
        for t in range(steps):
            targets[t, b], product = table[t, b, 1], 1.0
            for k in range(t, steps):
                r, v, following, boots, goes_on = table[k, b]
                delta = min(rho_max, rho[k, b]) * (r + gamma * boots * following - v)
                targets[t, b] += (gamma * lambda_) ** (k - t) * product * delta
                product *= min(c_max, rho[k, b])
                if not goes_on:
                    break
        for t in range(steps):
            r, v, following, boots, goes_on = table[t, b]
            after = targets[t + 1, b] if goes_on and t < steps - 1 else following
            adv[t, b] = min(pg_max, rho[t, b]) * (r + gamma * boots * after - v)
    return targets, adv


def upgo(table, gamma):
    steps, batch, _ = table.shape

    def of(t, b):
        r, _, following, boots, goes_on = table[t, b]
        after = following
        if goes_on and t < steps - 1:
            r1, v1, following1, boots1, _ = table[t + 1, b]
            if r1 + gamma * boots1 * following1 >= v1:
                after = of(t + 1, b)
        return r + gamma * boots * after

    return np.array([[of(t, b) for b in range(batch)] for t in range(steps)])


def log_prob(logit, action):
    """logit (..., N), action (...)"""
    flat = [math.log(softmax(row)[a]) for row, a in zip(logit.reshape(-1, logit.shape[-1]), action.reshape(-1))]
    return np.array(flat).reshape(action.shape)


def entropy(logit):
    flat = [-sum(p * math.log(p) for p in softmax(row)) for row in logit.reshape(-1, logit.shape[-1])]
    return np.array(flat).reshape(logit.shape[:-1])


def gaussian_log_prob(mu, sigma, action):
    result = np.zeros(len(mu))
    for b, d in np.ndindex(mu.shape):
        bell = math.exp(-0.5 * ((action[b, d] - mu[b, d]) / sigma[b, d]) ** 2)
        result[b] += math.log(bell / (sigma[b, d] * math.sqrt(2 * math.pi)))
    return result


def gaussian_entropy(sigma):
    return np.array([sum(0.5 * math.log(2 * math.pi * math.e * s**2) for s in row) for row in sigma])


def ppo_policy(logp_new, logp_old, adv, clip, dual_clip=None, weight=None):
    losses, kl, clipped = [], [], []
    for new, old, a in zip(logp_new, logp_old, adv):
        ratio = math.exp(new - old)
        gain = min(ratio * a, min(max(ratio, 1 - clip), 1 + clip) * a)
        if dual_clip is not None and a < 0:
            gain = max(gain, dual_clip * a)
        losses.append(-gain)
        kl.append(ratio - 1 - math.log(ratio))
        clipped.append(float(abs(ratio - 1) > clip))
    return mean(losses, weight), mean(kl, weight), mean(clipped, weight)


def ppo_value(new, old, return_, clip=None, weight=None):
    losses = []
    for v, v_old, r in zip(new, old, return_):
        error = (r - v) ** 2
        if clip is not None:
            error = max(error, (r - v_old - min(max(v - v_old, -clip), clip)) ** 2)
        losses.append(0.5 * error)
    return mean(losses, weight)


def coma_targets(action, target_q, reward, gamma, lambda_, done=None):
    """TD(lambda) targets (T, B, A), and which of them count"""
    steps, batch, agents, _ = target_q.shape
    targets, counted = np.zeros((steps, batch, agents)), np.zeros((steps, batch, agents))

    def of(t, b, a):
        if done is not None and bool(done[t, b]):
            return reward[t, b]
        following = target_q[t + 1, b, a, action[t + 1, b, a]]
        known_after = t + 2 < steps or (done is not None and bool(done[t + 1, b]))
        after = of(t + 1, b, a) if known_after else following
        return reward[t, b] + gamma * ((1 - lambda_) * following + lambda_ * after)

    for t, b, a in np.ndindex(steps, batch, agents):
        if t < steps - 1 or (done is not None and bool(done[t, b])):
            targets[t, b, a], counted[t, b, a] = of(t, b, a), 1
    return targets, counted


def coma(logit, action, q, target_q, reward, gamma, lambda_, done=None, weight=None):
    targets, counted = coma_targets(action, target_q, reward, gamma, lambda_, done)
    policy, critic, entropies = [], [], []
    for index in np.ndindex(action.shape):
        w = 1.0 if weight is None else weight[index]
        p, taken = softmax(logit[index]), action[index]
        baseline = sum(p[i] * q[index][i] for i in range(len(p)))
        policy.append(-w * math.log(p[taken]) * (q[index][taken] - baseline))
        entropies.append(w * entropy(logit[index]))
        critic.append(w * counted[index] * (targets[index] - q[index][taken]) ** 2)
    return mean(policy), sum(critic) / max(counted.sum(), 1), mean(entropies)
