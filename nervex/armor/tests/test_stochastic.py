import pytest
import torch

from nervex.armor import Armor


class Fixed(torch.nn.Module):
    """Answers what it was made with."""

    def __init__(self, **output):
        super().__init__()
        self.output = output

    def forward(self, data):
        return dict(self.output)


def act(plugin, seed=0, **output):
    armor = Armor(Fixed(**output))
    armor.add_plugin('main', plugin, **({'seed': seed} if plugin == 'multinomial_sample' else {}))
    return armor.forward({'obs': torch.zeros(len(next(iter(output.values()))), 1)})


def test_several_heads_and_masks_stay_a_list():
    logit = [torch.tensor([[9.0, 0.0]] * 40), torch.zeros(40, 3)]
    mask = [torch.tensor([[0.0, 1.0]] * 40), torch.ones(40, 3)]
    out = act('multinomial_sample', logit=logit, action_mask=mask)
    assert isinstance(out['action'], list) and out['action'][0].tolist() == [1] * 40
    assert set(out['action'][1].tolist()) == {0, 1, 2}
    assert act('argmax_sample', logit=logit, action_mask=mask)['action'][0].tolist() == [1] * 40


@pytest.mark.parametrize('as_mapping', [True, False])
def test_a_pair_is_a_normal_distribution(as_mapping):
    mu, sigma = torch.full((20000, 2), 0.25), torch.tensor([0.1, 2.0]).expand(20000, 2)
    logit = {'mu': mu, 'sigma': sigma} if as_mapping else (mu, sigma)
    out = act('multinomial_sample', logit=logit)
    assert out['drawn'].mean(0).tolist() == pytest.approx([0.25, 0.25], abs=0.05)
    assert out['drawn'].std(0).tolist() == pytest.approx([0.1, 2.0], rel=0.05)
    assert torch.equal(out['action'], out['drawn'].clamp(-1, 1)) and out['action'].abs().max() == 1
    assert out['logit']['mu'] is mu and out['logit']['sigma'] is sigma
    assert torch.equal(act('argmax_sample', logit=logit)['action'], mu)


def test_the_mean_is_kept_in_range():
    out = act('argmax_sample', logit=(torch.tensor([[3.0, -3.0]]), torch.ones(1, 2)))
    assert out['action'].tolist() == [[1.0, -1.0]]


def test_draws_repeat_with_their_seed_and_go_on_from_their_state():
    logit = (torch.zeros(4, 2), torch.ones(4, 2))
    assert torch.equal(act('multinomial_sample', logit=logit)['drawn'], act('multinomial_sample', logit=logit)['drawn'])
    assert not torch.equal(
        act('multinomial_sample', logit=logit)['drawn'], act('multinomial_sample', 1, logit=logit)['drawn']
    )
