import pytest
import torch

from nervex.armor import BaseArmor, add_plugin


class Act(torch.nn.Module):
    def __init__(self, action):
        super().__init__()
        self.action = action

    def forward(self, data):
        return {'action': data if isinstance(data, torch.Tensor) else self.action}


def armor_of(action, **kwargs):
    armor = BaseArmor(Act(action))
    add_plugin(armor, 'action_noise', **{'seed': 0, **kwargs})
    return armor


def test_gauss_has_the_asked_mean_and_deviation():
    action = torch.full((20000, 1), 0.2)
    noisy = armor_of(action, noise_kwargs={'mu': 0.1, 'sigma': 0.05}).forward({})['action']
    assert abs(noisy.mean() - 0.3) < 2e-3 and abs(noisy.std() - 0.05) < 2e-3
    assert torch.equal(action, torch.full((20000, 1), 0.2))


def test_noise_and_action_are_clamped():
    def noisy(**kwargs):
        return armor_of(torch.zeros(1000, 2), noise_kwargs={'sigma': 9.0}, **kwargs).forward({})['action']

    small = noisy(noise_range={'min': -0.2, 'max': 0.3})
    assert small.min().item() == pytest.approx(-0.2) and small.max().item() == pytest.approx(0.3)
    assert noisy().min() == -1.0 and noisy().max() == 1.0
    limits = {'min': [-1.0, -2.0], 'max': [1.0, 3.0]}
    assert noisy(action_range=limits).amin(0).tolist() == [-1.0, -2.0]
    assert noisy(action_range=limits).amax(0).tolist() == [1.0, 3.0]
    assert noisy(action_range=None).max() > 2.0


def test_noise_on_discrete_actions_is_refused():
    with pytest.raises(TypeError, match='eps_greedy_sample'):
        armor_of(torch.zeros(3, dtype=torch.long)).forward({})


def test_several_heads():
    first, second = armor_of([torch.zeros(4, 2), torch.zeros(4, 1)]).forward({})['action']
    assert first.shape == (4, 2) and second.shape == (4, 1) and (first != 0).all()


def test_ou_steps_follow_the_formula_and_remember_each_row():
    kwargs = {'mu': 1.0, 'sigma': 0.0, 'theta': 0.5, 'dt': 0.1}
    armor = armor_of(None, noise_type='ou', noise_kwargs=kwargs, action_range=None)

    def step(ids):
        return [round(v, 6) for v in armor.forward(torch.zeros(len(ids), 1), data_id=ids)['action'].flatten().tolist()]

    assert step([0, 1]) == [0.05, 0.05]  # 0 + 0.5 (1 - 0) 0.1
    assert step([1]) == [0.0975]  # 0.05 + 0.5 (1 - 0.05) 0.1
    armor.reset(data_id=[1])
    assert step([1, 0]) == [0.05, 0.0975]
    armor.reset()
    assert step([0, 1]) == [0.05, 0.05]


def test_the_gradient_goes_through_the_action():
    action = torch.zeros(3, 1, requires_grad=True)
    noisy = armor_of(action, noise_kwargs={'mu': 0.5, 'sigma': 0.0}).forward({})['action']
    assert noisy.tolist() == [[0.5]] * 3 and noisy.requires_grad


def test_seeded_and_resumed():
    armors = [armor_of(torch.zeros(4, 2), noise_type='ou', seed=s) for s in (1, 1, 2)]
    actions = [armor.forward({})['action'] for armor in armors]
    assert torch.equal(actions[0], actions[1]) and not torch.equal(actions[0], actions[2])
    armors[2].load_run_state_dict(armors[0].run_state_dict())
    assert torch.equal(armors[2].forward({})['action'], armors[0].forward({})['action'])


@pytest.mark.parametrize(
    'kwargs, match',
    [
        ({'noise_type': 'guass'}, "did you mean 'gauss'"),
        ({'noise_range': {'min': 0.0}}, 'noise_range'),
        ({'action_range': {'min': 1.0, 'max': -1.0}}, 'action_range needs min <= max, got 1.0 and -1.0'),
        ({'action_range': {'min': [-1.0, 2.0], 'max': [1.0, 1.0]}}, 'action_range needs min <= max'),
        ({'noise_kwargs': {'sigma': -1.0}}, 'sigma'),
        ({'noise_kwargs': {'sigmma': 1.0}}, "did you mean 'sigma'"),
    ],
)
def test_wrong_settings_are_named(kwargs, match):
    with pytest.raises((ValueError, KeyError), match=match):
        armor_of(torch.zeros(1, 1), **kwargs)


def test_missing_action_is_named():
    armor = BaseArmor(torch.nn.Identity())
    add_plugin(armor, 'action_noise')
    with pytest.raises(KeyError, match='action'):
        armor.forward({'logit': 1})
