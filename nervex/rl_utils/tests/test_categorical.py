import torch

from nervex.rl_utils import entropy, log_prob, log_prob_and_entropy


def test_equals_the_distribution_object():
    logit = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))
    action = logit.argmin(-1)
    reference = torch.distributions.Categorical(logits=logit)
    logp, ent = log_prob_and_entropy(logit, action)
    assert torch.allclose(logp, reference.log_prob(action)) and torch.allclose(ent, reference.entropy())
    assert torch.equal(log_prob(logit, action), logp) and torch.equal(entropy(logit), ent)


def test_masked_actions_add_nothing():
    logit = torch.tensor([[0.0, 0.0, -torch.inf]], requires_grad=True)
    logp, ent = log_prob_and_entropy(logit, torch.tensor([1]))
    assert torch.allclose(logp.exp(), torch.tensor([0.5])) and torch.allclose(ent.exp(), torch.tensor([2.0]))
    (logp + ent).backward()
    assert torch.isfinite(logit.grad).all()
