"""What is special to Rainbow: noise drawn anew for each pass, none in evaluation, and the network that fits."""

import copy

import pytest
import torch

from nervex.data import Batch
from nervex.model import FCDiscreteNet
from nervex.policy.rainbow_dqn import RainbowDQNPolicy, noisy_layers
from nervex.utils import ConfigError

DIMS = dict(obs_dim=3, action_dim=2, hidden_dim_list=[8])


def policy_of(**cfg):
    torch.manual_seed(0)
    return RainbowDQNPolicy({**dict(model=DIMS), **cfg})


def batch(rows=4):
    torch.manual_seed(1)
    return Batch(
        obs=torch.randn(rows, 3),
        next_obs=torch.randn(rows, 3),
        action=torch.tensor([0, 1] * (rows // 2)),
        reward=torch.randn(rows, 3),
        value_gamma=torch.full((rows,), 0.5),
        done=torch.zeros(rows, dtype=torch.bool),
        IS=torch.ones(rows),
    )


@pytest.mark.parametrize('use_iqn', [False, True])
def test_each_pass_of_an_update_has_noise_of_its_own(use_iqn):
    policy = policy_of(use_iqn=use_iqn)
    seen = []

    def watched(forward, layer):
        def call(data, **kwargs):
            seen.append(layer.noise_in.clone())
            return forward(data, **kwargs)

        return call

    online = watched(policy._armor.forward, noisy_layers(policy._model)[0])
    target = watched(policy._armor.target_forward, noisy_layers(policy._armor.target_model)[0])
    data = policy._data_preprocess_learn(batch())
    for _ in range(2):
        policy._td_error(data, online, target)
    assert len({tuple(noise.tolist()) for noise in seen}) == len(seen) == 6


def test_acting_explores_by_noise_and_evaluation_does_not():
    policy = policy_of()
    policy.set_setting('collect', {'eps': 0.0})
    data = {'obs': torch.ones(1, 3)}
    collected = [policy._forward_collect([0], data)['logit'] for _ in range(2)]
    evaluated = [policy._forward_eval([0], data)['logit'] for _ in range(2)]
    assert not torch.equal(*collected) and torch.equal(*evaluated)
    assert policy._model.training
    policy._forward_collect([0], data)  # draws other noise
    assert torch.equal(policy._forward_eval([0], data)['logit'], evaluated[0])


@pytest.mark.parametrize('use_iqn', [False, True])
def test_weights_scale_the_loss_and_priorities_are_one_a_row(use_iqn):
    policy = policy_of(use_iqn=use_iqn)
    once = copy.deepcopy(batch())
    once['IS'] = torch.full((4,), 0.5)
    losses = []
    for data in (batch(), once):
        torch.manual_seed(2)
        losses.append(policy._loss(policy._data_preprocess_learn(data))[0].item())
    assert losses[1] == pytest.approx(losses[0] / 2)
    priority = policy._forward_learn(policy._data_preprocess_learn(batch()))['priority']
    assert priority.shape == (4,) and (priority > 0).all()


def test_a_network_without_a_distribution_is_told_which_ones_have_one():
    with pytest.raises(ConfigError, match='noise_dist_fc'):
        RainbowDQNPolicy(dict(model=DIMS), model=FCDiscreteNet(3, 2))


@pytest.mark.parametrize('kappa', [0.5, 2.0])
def test_the_loss_of_implicit_quantiles_beside_a_loop(kappa):
    policy = policy_of(use_iqn=True, learn=dict(algo=dict(discount_factor=0.9, kappa=kappa)))
    seen = []

    def watched(forward):
        def call(data, **kwargs):
            seen.append(forward(data, **kwargs))
            return seen[-1]

        return call

    data = policy._data_preprocess_learn(batch())
    data.update(weight=torch.tensor([1.0, 0.5, 2.0, 0.7]), done=torch.tensor([0.0, 1.0, 0.0, 0.0]))
    (loss, _), _ = policy._td_error(data, watched(policy._armor.forward), watched(policy._armor.target_forward))
    own, target, chooser = seen
    total, taken = 0.0, chooser['q'].mean(0).argmax(1)
    for b in range(4):
        reward = sum(0.9**k * float(data['reward'][b, k]) for k in range(3))
        for i, fraction in enumerate(own['quantiles'].reshape(8, 4)[:, b]):
            for j in range(8):
                behind = 0.5 * (1 - float(data['done'][b])) * float(target['q'][j, b, taken[b]])
                delta = reward + behind - float(own['q'][i, b, data['action'][b]].detach())
                huber = 0.5 * delta**2 if abs(delta) <= kappa else kappa * (abs(delta) - 0.5 * kappa)
                total += float(data['weight'][b]) * abs(float(fraction) - (delta < 0)) * huber / kappa / 8
    assert loss.item() == pytest.approx(total / 4, rel=1e-4)
