"""PPG's two phases: what each learns, what it leaves alone, and that a resumed learner knows where it was."""

import pytest
import torch

from nervex.data import Batch
from nervex.policy import create_policy
from nervex.policy.tests.learning import train
from nervex.policy.tests.test_on_policy_ac import PPG, learn_batch, proof
from nervex.policy.tests.toy_envs import TemptationEnv
from nervex.utils import ConfigError

PHASE = {'aux_value_loss', 'auxiliary_loss', 'behavioral_cloning_loss'}


def make(fields=('learn',), continuous=False, **learn):
    torch.manual_seed(0)
    learn = dict(aux_freq=2, epochs_aux=40, batch_size=16) | learn
    model = dict(obs_dim=5, action_dim=2, hidden_dim_list=[16], continuous=continuous)
    return create_policy(dict(policy_type='ppg', model=model, learn=learn), enable_field=list(fields))


def batches(policy, rows=32):
    data = learn_batch(policy, rows)
    return {'policy': data, 'value': {**data, 'return_': data['obs'].sum(-1)}}


def weights(module):
    return torch.cat([p.detach().reshape(-1).clone() for p in module.parameters()])


def test_the_policy_phase_learns_each_network_from_its_own_batch():
    policy = make(aux_freq=100)
    data = batches(policy)
    head = weights(policy._model.policy_net.critic)
    value, net = weights(policy._model.value_net), weights(policy._model.policy_net)
    log = policy._forward_learn(data)
    assert not PHASE & set(log)
    assert torch.equal(head, weights(policy._model.policy_net.critic))  # the auxiliary head waits for its phase
    assert not torch.equal(net, weights(policy._model.policy_net))
    assert not torch.equal(value, weights(policy._model.value_net))
    expected = 0.5 * (data['value']['return_'] - data['value']['value']).pow(2).mean()
    assert log['value_loss'].item() == pytest.approx(expected.item(), rel=1e-4)


@pytest.mark.parametrize('continuous', [False, True])
def test_the_auxiliary_phase_learns_values_and_keeps_the_policy(continuous):
    policy = make(continuous=continuous, algo=dict(beta_weight=10.0), learning_rate=1e-3, learning_rate_aux=3e-3)
    if continuous:
        data = batches_continuous(policy)
    else:
        data = batches(policy)
    assert not PHASE & set(policy._forward_learn(data))
    output = policy._run(data['value']['obs'], 'compute_aux')
    before = (output['aux_value'] - data['value']['return_']).pow(2).mean()
    log = policy._forward_learn(data)
    assert set(log) >= PHASE and log['behavioral_cloning_loss'] >= 0
    after = policy._run(data['value']['obs'], 'compute_aux')
    assert (after['aux_value'] - data['value']['return_']).pow(2).mean() < 0.5 * before
    if not continuous:
        change = torch.softmax(after['logit'], -1) - torch.softmax(output['logit'], -1)
        assert change.abs().max() < 0.1


def batches_continuous(policy, rows=32):
    g = torch.Generator().manual_seed(1)
    obs = torch.randn(rows, 5, generator=g)
    with torch.no_grad():
        output = policy._model({'obs': obs})
    mu, sigma = output['logit']
    adv = torch.randn(rows, generator=g)
    data = dict(
        obs=obs,
        action=mu + sigma * torch.randn(mu.shape, generator=g),
        logit={'mu': mu, 'sigma': sigma},
        value=output['value'],
        adv=adv,
        return_=obs.sum(-1),
        weight=None,
    )
    return {'policy': data, 'value': data}


def test_the_divergence_is_that_of_the_whole_distribution():
    policy = make()
    obs = torch.randn(4, 5)
    new = policy._run(obs, 'compute_aux')['logit']
    old = torch.tensor([[0.0, 1.0]]).repeat(4, 1)
    _, info = policy._auxiliary_loss(dict(obs=obs, logit=old, return_=torch.zeros(4)))
    p, log_p, log_q = torch.softmax(old, -1), torch.log_softmax(old, -1), torch.log_softmax(new, -1)
    assert info['behavioral_cloning_loss'].item() == pytest.approx((p * (log_p - log_q)).sum(-1).mean().item())


def test_the_newest_rows_are_kept_up_to_a_number():
    policy = make(aux_freq=100, aux_rows=70)
    for _ in range(5):
        policy._forward_learn(batches(policy))
    assert [len(rows['return_']) for rows in policy._kept] == [32, 32, 32]


def test_kept_rows_are_copies_because_a_buffer_uses_its_memory_again():
    policy = make(aux_freq=100)
    data = batches(policy)
    obs, return_ = data['value']['obs'].clone(), data['value']['return_'].clone()
    policy._forward_learn(data)
    data['value']['obs'].zero_(), data['value']['return_'].zero_()
    assert torch.equal(policy._kept[0]['obs'], obs) and torch.equal(policy._kept[0]['return_'], return_)


@pytest.mark.parametrize('rate, rate_aux', [(1e-6, 1e-2), (1e-2, 1e-6)])
def test_the_auxiliary_phase_has_an_optimizer_of_its_own(rate, rate_aux):
    policy = make(aux_freq=1, epochs_aux=1, batch_size=32, learning_rate=rate, learning_rate_aux=rate_aux)
    data = batches(policy)
    policy._keep(data['value'])
    net = weights(policy._model.policy_net)
    policy._auxiliary_phase()
    moved = (weights(policy._model.policy_net) - net).abs().max().item()  # Adam's first step is its rate
    assert moved == pytest.approx(rate_aux, rel=0.2)


def test_each_pass_of_the_auxiliary_phase_takes_all_rows_in_a_new_order(monkeypatch):
    policy, seen = make(aux_freq=1, epochs_aux=3), []
    loss = policy._auxiliary_loss

    def watched(data):
        seen.append(data['return_'].tolist())
        return loss(data)

    watched.__name__ = loss.__name__
    monkeypatch.setattr(policy, '_auxiliary_loss', watched)
    data = batches(policy)
    policy._forward_learn(data)
    rows = data['value']['return_'].tolist()
    shown = [row for part in seen for row in part]
    passes = [shown[k : k + len(rows)] for k in range(0, len(shown), len(rows))]
    assert len(passes) == 3 and all(sorted(one) == sorted(rows) for one in passes)
    assert len({tuple(one) for one in [*passes, rows]}) == 4


def test_a_resumed_learner_goes_on_in_the_middle_of_a_phase():
    def few_updates(policy, count):
        for seed in range(count):
            torch.manual_seed(seed)
            policy._forward_learn(data)

    straight, stopped, resumed = (make(aux_freq=4, epochs_aux=2) for _ in range(3))
    data = batches(straight)
    few_updates(straight, 3)
    few_updates(stopped, 3)
    resumed._load_state_dict_learn(stopped._state_dict_learn())
    few_updates(straight, 2)
    few_updates(resumed, 2)
    assert torch.equal(weights(straight._model), weights(resumed._model))


def test_one_buffer_is_enough():
    cfg = proof('ppg')
    cfg['replay_buffer'] = {}
    assert train('ppg', TemptationEnv, cfg).final_return == 1


def test_rows_of_both_buffers_become_a_batch_each():
    policy = make()
    rows = Batch(obs=torch.zeros(3, 5).numpy(), adv=torch.zeros(3).numpy())
    both = policy._data_preprocess_learn({'policy': rows, 'value': rows[:2]})
    assert len(both['policy']['obs']) == 3 and len(both['value']['obs']) == 2


def test_settings_that_make_no_sense_are_told_with_their_path():
    with pytest.raises(ConfigError, match=r'policy\.learn\.aux_freq'):
        train('ppg', TemptationEnv, {**PPG, 'policy': dict(learn=dict(aux_freq=0))})
