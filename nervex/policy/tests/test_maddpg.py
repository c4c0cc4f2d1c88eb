"""MADDPG and MATD3: losses against references in plain loops and by hand, what is masked, and that they learn."""

import numpy as np
import pytest
import torch

from nervex.data import Batch
from nervex.policy import create_policy
from nervex.policy.tests.learning import train
from nervex.policy.tests.toy_control import uphill
from nervex.policy.tests.toy_envs import AimEnv, PairEnv
from nervex.utils import POLICY_REGISTRY

T, B, A, N, S = 2, 4, 3, 4, 5
SIZES = dict(agent_num=A, obs_dim=3, global_obs_dim=S, action_dim=N, hidden_dim_list=[8])


def batch(continuous=False, each=False, alive=False, seed=0):
    """Sequences of 2, 2, 1 and 2 real steps; the second ends, the third ends, the last one is cut by its time limit."""
    rng = np.random.default_rng(seed)
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)  # noqa: E731
    mask = np.arange(T) < np.array([2, 2, 1, 2])[:, None]
    done, truncated = ~mask, np.zeros((B, T), bool)
    done[1, 1] = done[2, 0] = done[3, 1] = truncated[3, 1] = True
    obs = dict(agent_state=normal(B, T + 1, A, 3), global_state=normal(B, T + 1, S))
    if not continuous:
        obs['action_mask'] = np.ones((B, T + 1, A, N), np.float32)
        obs['action_mask'][..., 2:] = rng.integers(0, 2, (B, T + 1, A, 2))
    if alive:
        obs['agent_alive'] = np.ones((B, T + 1, A), np.float32)
        obs['agent_alive'][0, 1:, 0] = obs['agent_alive'][3, 2:, 1] = obs['agent_alive'][1, :, 2] = 0
    action = rng.uniform(-1, 1, (B, T, A, N)).astype(np.float32) if continuous else rng.integers(0, 2, (B, T, A))
    reward = normal(B, T, A) if each else normal(B, T)
    return Batch(dict(obs=obs, action=action, reward=reward, done=done, truncated=truncated, mask=mask))


def make(name, continuous=False, model=None, **algo):
    torch.manual_seed(1)
    cfg = dict(policy_type=name, model={**SIZES, 'continuous': continuous, **(model or {})}, learn=dict(algo=algo))
    policy = create_policy(cfg, enable_field=['learn'])
    for parameter in policy._armor.target_model.parameters():
        parameter.data.mul_(1.3)  # the target net is another one
    return policy


class Reference:
    """Both losses in loops over rows, steps and agents, with the networks called for one state at a time."""

    def __init__(self, policy, data, gamma=0.99, logit_weight=1e-3):
        self.policy, self.data, self.gamma, self.logit_weight = policy, data, gamma, logit_weight
        self.continuous, self.twins = policy._model.continuous, len(policy._model.critic)
        self.each = data['reward'].ndim == 3
        self.at = policy._generator.get_state()

    def chance(self, steps, kind):
        """What the policy will draw: the same generator, asked for the same shape, time first."""
        generator = torch.Generator()
        generator.set_state(self.at)
        fresh = torch.empty(steps, B, A, N)
        return fresh.exponential_(generator=generator) if kind == 'race' else fresh.normal_(generator=generator)

    def obs(self, row, t):
        return {key: torch.as_tensor(part[row, t]) for key, part in self.data['obs'].items()}

    def alive(self, row, t, agent):
        return 'agent_alive' not in self.data['obs'] or self.data['obs']['agent_alive'][row, t, agent] > 0

    def output_of(self, model, row, t, agent):
        seen = torch.cat([self.obs(row, t)['agent_state'][agent], torch.eye(A)[agent]])
        return model.actor.head(model.actor.encoder(seen))

    def legal(self, row, t, agent):
        return [k for k in range(N) if self.data['obs']['action_mask'][row, t, agent, k]]

    def drawn(self, model, row, t, agent, race):
        """(the one-hot action, the softmax that it has its gradient from)"""
        logit = self.output_of(model, row, t, agent)
        scores = {k: logit[k] - race[t, row, agent, k].log() for k in self.legal(row, t, agent)}
        total = sum(score.exp() for score in scores.values())
        soft = torch.stack([scores[k].exp() / total if k in scores else torch.zeros(()) for k in range(N)])
        return torch.eye(N)[max(scores, key=lambda k: scores[k].item())], soft

    def q(self, model, which, row, t, agent, actions):
        living = [action * float(self.alive(row, t, k)) for k, action in enumerate(actions)]
        judged = torch.cat([self.obs(row, t)['global_state'], *living, torch.eye(A)[agent]])
        return model.critic[which](judged).squeeze()

    def stored(self, row, t):
        given = [torch.as_tensor(self.data['action'][row, t, k]) for k in range(A)]
        return given if self.continuous else [torch.eye(N)[k] for k in given]

    def steps(self):
        for row, t, agent in np.argwhere(np.repeat(self.data['mask'][..., None], A, -1)):
            if self.alive(row, t, agent):
                yield row, t, agent

    def target_action(self, row, t, agent, chance):
        target, algo = self.policy._armor.target_model, self.policy._cfg.learn.algo
        if not self.continuous:
            return self.drawn(target, row, t, agent, chance)[0]
        noise = (chance[t, row, agent] * algo.target_noise_sigma).clamp(-0.5, 0.5)
        return (torch.tanh(self.output_of(target, row, t, agent)) + noise).clamp(-1, 1)

    def critic_loss(self):
        model, target, chance = self.policy._model, self.policy._armor.target_model, None
        chance = self.chance(T + 1, 'normal' if self.continuous else 'race')
        errors = [[] for _ in range(self.twins)]
        for row, t, agent in self.steps():
            after = [self.target_action(row, t + 1, k, chance) for k in range(A)]
            next_q = [
                min(self.q(target, which, row, t + 1, k, after).item() for which in range(self.twins)) for k in range(A)
            ]
            living = [k for k in range(A) if self.alive(row, t + 1, k)]
            if agent in living:
                following = next_q[agent]
            else:
                following = 0.0 if self.each or not living else sum(next_q[k] for k in living) / len(living)
            ended = self.data['done'][row, t] and not self.data['truncated'][row, t]
            reward = self.data['reward'][row, t]
            goal = float(reward[agent] if self.each else reward) + (0 if ended else self.gamma * following)
            for which in range(self.twins):
                errors[which].append(goal - self.q(model, which, row, t, agent, self.stored(row, t)))
        return sum(torch.stack(own).pow(2).mean() for own in errors)

    def actor_loss(self):
        model, parts = self.policy._model, []
        race = None if self.continuous else self.chance(T, 'race')
        for row, t, agent in self.steps():
            actions, extra = self.stored(row, t), 0.0
            if self.continuous:
                actions[agent] = torch.tanh(self.output_of(model, row, t, agent))
            else:
                hard, soft = self.drawn(model, row, t, agent, race)
                actions[agent] = soft + (hard - soft).detach()
                extra = self.logit_weight * self.output_of(model, row, t, agent).pow(2).mean()
            parts.append(-self.q(model, 0, row, t, agent, actions) + extra)
        return torch.stack(parts).mean()


@pytest.mark.parametrize('alive', [False, True], ids=['all alive', 'some leave'])
@pytest.mark.parametrize('each', [False, True], ids=['reward of the team', 'reward of each'])
@pytest.mark.parametrize('continuous', [False, True], ids=['discrete', 'continuous'])
@pytest.mark.parametrize('name', ['maddpg', 'matd3'])
def test_losses_and_gradients_equal_a_reference_in_loops(name, continuous, each, alive):
    policy, given = make(name, continuous), batch(continuous, each, alive)
    data = policy._data_preprocess_learn(given)
    for loss_of, parts in (('critic', policy._model.critic), ('actor', policy._model.actor)):
        reference = Reference(policy, given.to_numpy())  # draws what the policy is about to draw
        expected = getattr(reference, f'{loss_of}_loss')()
        loss, _ = getattr(policy, f'_{loss_of}_loss')(data)
        assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
        wanted, found = (torch.autograd.grad(one, list(parts.parameters())) for one in (expected, loss))
        for one, other in zip(wanted, found):
            assert torch.allclose(one, other, rtol=1e-3, atol=1e-6)


class Fixed(torch.nn.Module):
    """Q_i is the i-th number of the state plus what all agents do, weighed 1 and 10; both actors do 0.5."""

    continuous, action_dim, state_shape = True, 1, (2, 0)

    def __init__(self):
        super().__init__()
        self.actor, self.critic = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
        for part in (self.actor, self.critic):
            torch.nn.init.zeros_(part.weight), torch.nn.init.constant_(part.bias, 0.5)

    def forward(self, data, mode='compute_action'):
        state = data['obs']['agent_state']
        if mode == 'compute_action':
            return {'action': self.actor(state * 0)}
        done = data['action'].squeeze(-1)
        done = done if data['action'].dim() > state.dim() else done.unsqueeze(-2).expand(*done.shape, 2)
        return {
            'q_value': state.squeeze(-1) + done @ torch.tensor([1.0, 10.0]) + self.critic(state * 0).squeeze(-1) - 0.5
        }


@pytest.mark.parametrize('how, ended', [('ends', True), ('goes on', False), ('time limit', False)])
def test_losses_by_hand(how, ended):
    """
    gamma 0.5, r = 2, s = (1, 3), a = (0.1, 0.2), s' = (2, 4): Q = s_i + 2.1 = 3.1, 5.1 and Q' = s'_i + 0.5 + 5 = 7.5,
    9.5, so that y = 2 + 3.75 and 2 + 4.75, or 2 at an end. With a = (0.5, 0.2) Q_1 = 3.5, with (0.1, 0.5) Q_2 = 8.1.
    """
    policy = create_policy(
        dict(policy_type='maddpg', learn=dict(algo=dict(discount_factor=0.5))), model=Fixed(), enable_field=['learn']
    )
    data = Batch(
        dict(
            obs=dict(agent_state=np.array([[[[1.0], [3.0]], [[2.0], [4.0]]]], np.float32)),
            action=np.array([[[[0.1], [0.2]]]], np.float32),
            reward=np.array([[2.0]], np.float32),
            done=np.array([[how != 'goes on']]),
            truncated=np.array([[how == 'time limit']]),
            mask=np.array([[True]]),
        )
    )
    data = policy._data_preprocess_learn(data)
    goals = (2.0, 2.0) if ended else (5.75, 6.75)
    expected = ((goals[0] - 3.1) ** 2 + (goals[1] - 5.1) ** 2) / 2
    assert policy._critic_loss(data)[0].item() == pytest.approx(expected, rel=1e-5)
    assert policy._actor_loss(data)[0].item() == pytest.approx(-(3.5 + 8.1) / 2, rel=1e-5)


@pytest.mark.parametrize('continuous', [False, True])
def test_what_padding_and_agents_that_have_left_see_and_do_changes_no_loss(continuous):
    losses = []
    for change in (False, True):
        policy, data = make('maddpg', continuous), batch(continuous, alive=True).to_numpy()
        gone = data['obs']['agent_alive'] == 0
        assert gone.any()
        if change:
            data['obs']['agent_state'][gone] = 7.0
            data['action'][gone[:, :-1]] = 0.3 if continuous else 1
            data['action'][~data['mask']] = 0.3 if continuous else 1
            data['reward'][~data['mask']] = 1e3
        data = policy._data_preprocess_learn(Batch(data))
        losses.append([policy._critic_loss(data)[0].item(), policy._actor_loss(data)[0].item()])
    assert losses[0] == losses[1]


def test_illegal_actions_have_no_part_in_targets_draws_and_gradients():
    policy = make('maddpg')
    data = policy._data_preprocess_learn(batch())
    output = policy._model({'obs': data['obs']})
    forbidden = data['obs']['action_mask'] == 0
    assert forbidden.any()
    for _ in range(50):
        drawn = policy._smoothed(policy._chosen(output))
        assert torch.equal(drawn.sum(-1), torch.ones(T + 1, B, A)) and not drawn[forbidden].any()
    drawn = policy._chosen(output)
    weights = torch.randn(drawn.shape, generator=torch.Generator().manual_seed(0))
    (gradient,) = torch.autograd.grad((drawn * weights).sum(), output['logit'])
    assert not gradient[forbidden].any() and gradient[~forbidden].abs().sum() > 0


def proof(continuous, stop=None, share=True, memory=None, steps=6000):
    return dict(
        policy=dict(
            model=dict(hidden_dim_list=[32], lstm_type=memory, share=share),
            learn=dict(train_step=8, learning_rate=3e-3, batch_size=64, algo=dict(target_theta=0.05)),
            collect=dict(unroll_len=2 if memory else 1, traj_len='inf', random_steps=200),
        ),
        actor=dict(n_episode=8),
        evaluator=dict(n_episode=20, eval_freq=100, stop_val=(-0.15 if continuous else 1.9) if stop is None else stop),
        commander=dict(max_env_step=steps),
    )


ENVS = {False: PairEnv, True: AimEnv}


HOW = [
    ('maddpg', True, None),
    ('matd3', True, None),
    ('maddpg', False, None),
    pytest.param('maddpg', True, 'gru', marks=pytest.mark.slow),
    pytest.param('matd3', False, 'lstm', marks=pytest.mark.slow),
]


@pytest.mark.parametrize('name, share, memory', HOW)
@pytest.mark.parametrize('continuous', [False, True], ids=['discrete', 'continuous'])
def test_it_learns_and_never_takes_what_is_forbidden(name, continuous, share, memory):
    assert train(name, ENVS[continuous], proof(continuous, share=share, memory=memory)).solved


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('continuous', [False, True], ids=['discrete', 'continuous'])
@pytest.mark.parametrize('name', ['maddpg', 'matd3'])
def test_it_learns_with_every_seed(name, continuous, seed):
    assert train(name, ENVS[continuous], proof(continuous), seed=seed).solved


@pytest.mark.parametrize('part', ['_critic_loss', '_actor_loss'])
@pytest.mark.parametrize('continuous', [False, True], ids=['discrete', 'continuous'])
def test_a_loss_of_the_wrong_sign_learns_nothing(continuous, part):
    broken = uphill(POLICY_REGISTRY.get('maddpg'), part)
    assert train(broken, ENVS[continuous], proof(continuous, steps=1000)).final_return < (-1.0 if continuous else 1.2)
