"""Small parts that run at every step: forward passes, one update, one logged variable, one resolved config."""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import nn

BATCHES = (1, 8)
CASES = [f'{net}_b{batch}' for net in ('net', 'actor_critic') for batch in BATCHES] + ['update', 'log', 'config']
Case = Callable[..., int]


def sequential(activation: type[nn.Module], *widths: int) -> nn.Sequential:
    """Linear layers with the activation between them."""
    layers: list[nn.Module] = []
    for i, o in pairwise(widths[:-1]):
        layers += [nn.Linear(i, o), activation()]
    return nn.Sequential(*layers, nn.Linear(*widths[-2:]))


def plain_torch() -> dict[str, Case]:
    """What one would write by hand."""
    net, actor, critic = (sequential(nn.Tanh, 4, 64, 64, width) for width in (2, 2, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    batch = torch.randn(64, 4)

    def update() -> None:
        loss = net(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    cases: dict[str, Case] = {'update': lambda clock: clock.repeat(update)}
    for size in BATCHES:
        obs = torch.randn(size, 4)
        cases[f'net_b{size}'] = _without_gradient(lambda obs=obs: net(obs))
        cases[f'actor_critic_b{size}'] = _without_gradient(lambda obs=obs: (actor(obs), critic(obs)))
    return cases


def nervex_parts() -> dict[str, Case]:
    """The parts of the same size, dicts in and out."""
    from nervex.model import FCDiscreteNet, FCValueAC

    net = FCDiscreteNet(4, 2, hidden_dim_list=[64, 64], dueling=False, activation='tanh')
    both = FCValueAC(4, 2, hidden_dim_list=[64, 64], share_encoder=False, head_layer_num=0, activation='tanh')
    cases: dict[str, Case] = {'update': _update('off'), 'log': _log, 'config': _config}
    for size in BATCHES:
        data = {'obs': torch.randn(size, 4)}
        cases[f'net_b{size}'] = _without_gradient(lambda data=data: net(data))
        cases[f'actor_critic_b{size}'] = _without_gradient(lambda data=data: both(data))
    return cases


def recorded() -> dict[str, Case]:
    """The update from a recording."""
    return {'update': _update('ts')}


def _without_gradient(function: Callable[[], object]) -> Case:
    def case(clock: object) -> int:
        with torch.no_grad():
            return clock.repeat(function)

    return case


def _update(backend: str) -> Case:
    def case(clock: object) -> int:
        from nervex.torch_utils import Adam, FlatParameters, GraphedLoss

        net = sequential(nn.Tanh, 4, 64, 64, 2)
        flat, batch = FlatParameters(net), {'x': torch.randn(64, 4)}
        update, optimizer = GraphedLoss(lambda b: net(b['x']).pow(2).mean(), flat, backend), Adam(flat, lr=1e-3)

        def step() -> None:
            update(batch)
            optimizer.apply()

        return clock.repeat(step)

    return case


def _log(clock: object) -> int:
    """Two variables and a step of the clock, counted as two: what the buffer logs at every sample."""
    from nervex.data.structure import OutTickMonitor
    from nervex.utils.autolog import TickTime

    model, value = OutTickMonitor(TickTime(), expire=10), torch.tensor(1.0)

    def step() -> None:
        model.priority = value
        model.out_time = 1.0
        model.time.step()

    return 2 * clock.repeat(step)


def _config(clock: object) -> int:
    from nervex.config import compile_config

    return clock.repeat(lambda: compile_config('cartpole_dqn'))
