import pytest
import torch

from nervex.model import ActorCriticBase, FCValueAC


class ByHand(ActorCriticBase):
    def compute_action(self, data):
        return {'logit': data['obs'] * 2}

    def compute_action_value(self, data):
        return {**self.compute_action(data), 'value': data['obs'].sum(-1)}


def test_an_actor_critic_by_hand_is_called_by_mode():
    net, data = ByHand(), {'obs': torch.tensor([[1.0, 2.0]])}
    assert net(data)['value'].tolist() == [3.0] and net(data, mode='compute_action')['logit'].tolist() == [[2.0, 4.0]]
    with pytest.raises(KeyError, match='compute_action_value'):
        net(data, mode='compute_actoin')


def test_a_method_that_was_not_written_is_named():
    class Half(ActorCriticBase):
        """Nothing in here."""

    for mode in ActorCriticBase.modes:
        with pytest.raises(NotImplementedError, match=f'Half needs a method {mode}'):
            Half()({'obs': torch.zeros(1)}, mode=mode)


def test_built_in_actor_critics_are_of_this_kind():
    assert issubclass(FCValueAC, ActorCriticBase)
