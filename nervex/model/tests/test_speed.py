import time
import timeit
from itertools import pairwise

import pytest
import torch
import torch.nn as nn

from nervex.model import FCDiscreteNet, FCValueAC


def ratio_of(ours, plain, number=200, rounds=40):
    """Best processor time against best processor time, measured in turns: a busy neighbour disturbs few of them."""
    times = [[timeit.timeit(f, timer=time.process_time, number=number) for f in (ours, plain)] for _ in range(rounds)]
    return min(t[0] for t in times) / min(t[1] for t in times)


def sequential(widths, activation):
    layers = []
    for i, o in pairwise(widths[:-1]):
        layers += [nn.Linear(i, o), activation()]
    return nn.Sequential(*layers, nn.Linear(*widths[-2:]))


@pytest.mark.slow
@pytest.mark.parametrize('batch', [1, 8])
@pytest.mark.parametrize('grad', [True, False])
@pytest.mark.parametrize('widths', [[64], [64, 64], [128, 128, 64]])
def test_forward_costs_at_most_a_little_more_than_a_sequential(widths, grad, batch):
    obs = torch.randn(batch, 4)
    net, plain = FCDiscreteNet(4, 2, hidden_dim_list=widths, dueling=False), sequential([4, *widths, 2], nn.ReLU)
    data = {'obs': obs}
    with torch.set_grad_enabled(grad):
        assert ratio_of(lambda: net(data), lambda: plain(obs)) < 1.15


@pytest.mark.slow
@pytest.mark.parametrize('batch', [1, 8])
def test_actor_critic_costs_at_most_a_little_more_than_two_sequentials(batch):
    obs = torch.randn(batch, 4)
    net = FCValueAC(4, 2, hidden_dim_list=[64, 64], share_encoder=False, head_layer_num=0, activation='tanh')
    actor, critic = sequential([4, 64, 64, 2], nn.Tanh), sequential([4, 64, 64, 1], nn.Tanh)
    data = {'obs': obs}
    with torch.no_grad():
        assert ratio_of(lambda: net(data), lambda: (actor(obs), critic(obs))) < 1.15
