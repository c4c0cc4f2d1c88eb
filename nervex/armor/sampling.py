"""Exploring among discrete actions: the plugins, their source of chance, and what heads and masks mean to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

from nervex.armor.plugin import IArmorStatelessPlugin
from nervex.torch_utils.crossing import to_arrays
from nervex.utils.errors import UnknownNameError
from nervex.utils.part_state import HasState

_BLOCK = 1024  # numbers drawn at once where few are needed a call


class Draws:
    """
    Overview:
        A random generator of its own for each device that asks, all from one seed. Without a seed it takes one from
        torch's global generator, so that a run that was seeded as a whole repeats itself.
    Arguments:
        - seed (:obj:`int | None`): start of all generators
    Interfaces:
        on, coins, races, normal, state_dict, load_state_dict
    """

    def __init__(self, seed: int | None = None) -> None:
        self._seed = int(torch.randint(2**62, ()).item()) if seed is None else int(seed)
        self._generators: dict[torch.device, torch.Generator] = {}
        self._coins: list[float] = []
        self._races = np.empty(0, dtype=np.float32)

    def on(self, device: torch.device) -> torch.Generator:
        """The generator of one device."""
        found = self._generators.get(device)
        if found is None:
            found = self._generators[device] = torch.Generator(device)
            found.manual_seed(self._seed)
        return found

    def coins(self, count: int) -> list[float]:
        """Numbers uniform in [0, 1)."""
        if len(self._coins) < count:
            generator = self.on(torch.device('cpu'))
            self._coins = torch.rand(max(count, _BLOCK), dtype=torch.float64, generator=generator).tolist()
        left = len(self._coins) - count
        taken = self._coins[left:]
        del self._coins[left:]
        return taken

    def races(self, like: np.ndarray) -> np.ndarray:
        """Logarithms of Exp(1) numbers in the shape of an array; nobody writes to them."""
        size = like.size
        if len(self._races) < size:
            block = torch.empty(max(size, _BLOCK)).exponential_(generator=self.on(torch.device('cpu')))
            self._races = block.log_().numpy()
        taken, self._races = self._races[:size], self._races[size:]
        return taken.reshape(like.shape)

    def normal(self, like: Any) -> Any:
        """Standard normal numbers in the shape, kind and dtype of a tensor or array."""
        if isinstance(like, Tensor):
            on = self.on(like.device)
            return torch.randn(like.shape, dtype=like.dtype, device=like.device, generator=on)
        return torch.randn(like.shape, generator=self.on(torch.device('cpu'))).numpy()

    def state_dict(self) -> dict[str, Any]:
        """Seed, state of each generator, and the numbers that are drawn and not yet used."""
        return {
            'seed': self._seed,
            'states': {str(device): generator.get_state() for device, generator in self._generators.items()},
            'coins': torch.tensor(self._coins, dtype=torch.float64),
            'races': torch.from_numpy(self._races.copy()),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where ``state_dict`` was taken."""
        self._seed = state['seed']
        self._generators = {}
        for name, value in state['states'].items():
            self.on(torch.device(name)).set_state(value)
        self._coins, self._races = state['coins'].tolist(), state['races'].numpy().copy()


class DrawingPlugin(IArmorStatelessPlugin, HasState):
    """A sampler with a source of chance of its own."""

    resume_parts = ('_draws',)

    def __init__(self, seed: int | None = None) -> None:
        self._draws = Draws(seed)


class EpsGreedySamplePlugin(DrawingPlugin):
    """
    Overview:
        With probability ``eps`` a random legal action, else the greedy one. Each row and each head tosses its own coin.
        ``eps`` is an argument of forward: a float, or an array with one value for each row (environment).
    Arguments:
        - seed (:obj:`int | None`): of the source of chance, see ``Draws``
    Shapes:
        - logits and actions as ``argmax_sample``; eps: float, or the leading dims of logit, or the first ones of them
    """

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The forward with this plugin around it."""

        def eps_greedy_forward(data: Any, *args: Any, eps: Any = None, **kwargs: Any) -> dict:
            if eps is None:
                raise TypeError("the plugin 'eps_greedy_sample' needs forward(..., eps=...)")
            if isinstance(eps, (float, int)) and not 0.0 <= eps <= 1.0:
                raise ValueError(f'eps is the probability of a random action: between 0 and 1, got {eps}')
            output = forward(data, *args, **kwargs)
            return {**output, 'action': per_head(output, self._choose, eps)}

        return eps_greedy_forward

    def _own_choice(self, logit: np.ndarray, mask: Any) -> np.ndarray:
        """What the policy does where it does not explore."""
        return argmax(logit, mask)

    def _choose(self, logit: Any, mask: Any, eps: Any) -> Any:
        """One number u for each row is enough: u < eps decides, and then u / eps, uniform again, picks the action."""
        if type(logit) is not np.ndarray:
            return in_arrays(self._choose, logit, mask, eps)
        action = self._own_choice(logit, mask)
        coins = self._draws.coins(action.size)
        if isinstance(eps, (float, int)):
            if not coins or min(coins) >= eps:
                return action
            eps = [eps] * len(coins)
        else:
            eps = _each_row(eps, action.shape)
        rows, every = action.reshape(-1), range(logit.shape[-1])
        legal = None if mask is None else np.broadcast_to(mask, logit.shape).reshape(len(rows), -1)
        for row, (coin, row_eps) in enumerate(zip(coins, eps)):
            if coin < row_eps:
                choices: Any = every if legal is None else np.flatnonzero(legal[row])
                if len(choices):
                    rows[row] = choices[int(coin / row_eps * len(choices))]
        return rows.reshape(action.shape)


# ---- heads, rows, masks
def per_head(output: Any, choose: Callable[..., Any], *args: Any) -> Any:
    """
    Overview:
        Choose an action for each action head of a model's output.
    Arguments:
        - output (:obj:`dict`): ``logit`` a tensor (one head) or a list of tensors; ``action_mask`` likewise, optional.
          Arrays may stand for tensors
        - choose (:obj:`Callable`): ``choose(logit, mask, *args) -> action``, for tensors of any shape and for arrays
    Returns:
        - action (:obj:`torch.LongTensor | list`): a list if the logits are a list, arrays for arrays
    """
    logit, mask = logit_of(output), output.get('action_mask')
    if mask is None and type(logit) is np.ndarray:
        return choose(logit, None, *args)
    if isinstance(logit, (np.ndarray, Tensor)):
        if mask is not None and not isinstance(mask, (Tensor, np.ndarray)):
            raise ValueError(f'one logit tensor needs one action_mask tensor, got a {type(mask).__name__}')
        return choose(logit, mask, *args)
    if not isinstance(logit, list):
        raise TypeError(
            f'logit is one tensor or a list of them, got a {type(logit).__name__}: a pair (mu, sigma) '
            'belongs to continuous actions, which have no random action among them'
        )
    masks = [None] * len(logit) if mask is None else mask
    if isinstance(masks, (Tensor, np.ndarray)) or len(masks) != len(logit):
        raise ValueError(f'{len(logit)} action heads need a list of {len(logit)} action masks (None: all legal)')
    return [choose(head, head_mask, *args) for head, head_mask in zip(logit, masks)]


def logit_of(output: Any) -> Any:
    try:
        return output['logit']
    except (KeyError, TypeError, IndexError) as error:
        got = sorted(output) if isinstance(output, dict) else type(output).__name__
        raise UnknownNameError(f"sampling an action needs a model output dict with 'logit', got {got}") from error


def in_arrays(choose: Callable[..., np.ndarray], logit: Tensor, mask: Any, *args: Any) -> Tensor:
    """Chance is drawn for arrays only, so that arrays and tensors meet the same one."""
    if is_in_torch_dispatch_mode():
        raise RuntimeError('an action is drawn in NumPy, which a recording of tensor operations would freeze')
    action = choose(to_arrays(logit), None if mask is None else to_arrays(mask), *args)
    return torch.as_tensor(action, device=logit.device)


def argmax(logit: Any, mask: Any) -> Any:
    return legal(logit, mask).argmax(-1)


def legal(logit: Any, mask: Any) -> Any:
    """A copy of the logits with illegal actions (mask 0) at minus infinity; the stored logits stay as they are."""
    if mask is None:
        return logit
    if mask.shape[-1] != logit.shape[-1]:
        raise ValueError(f'action_mask {tuple(mask.shape)} does not fit logit {tuple(logit.shape)}: last dims differ')
    if isinstance(logit, Tensor):
        return logit.masked_fill(torch.as_tensor(mask, device=logit.device) == 0, float('-inf'))
    return np.where(to_arrays(mask) == 0, logit.dtype.type('-inf'), logit)


def _each_row(eps: Any, lead: tuple[int, ...]) -> list[float]:
    """Probabilities (an epsilon for each environment, for all its agents) for all rows of this shape."""
    given = np.asarray(eps, dtype=np.float64)
    if given.size and not 0.0 <= given.min() <= given.max() <= 1.0:
        raise ValueError(f'each row needs a probability between 0 and 1, got {given.tolist()}')
    if given.shape != lead[: given.ndim]:
        raise ValueError(f'a per-row value of shape {given.shape} does not fit rows of shape {lead}')
    wide = given.reshape(given.shape + (1,) * (len(lead) - given.ndim))
    return np.broadcast_to(wide, lead).reshape(-1).tolist()


class ArgmaxSamplePlugin(IArmorStatelessPlugin):
    """
    Overview:
        ``output['action']``: the likeliest one. Of logits the legal action with the largest, for each row and head (a
        row without any legal action gets action 0); of a normal distribution, a pair (mu, sigma), the mean within
        [-1, 1].
    Shapes:
        - logit (:obj:`torch.FloatTensor`): :math:`(*, A)`, or a list of them; action_mask: 1 is legal, broadcasts; or a
          pair :math:`(*, D)`
        - action (:obj:`torch.LongTensor`): :math:`(*)`, or a list of them; or :math:`(*, D)`; arrays for arrays
    """

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The forward with this plugin around it."""

        def argmax_forward(data: Any, *args: Any, **kwargs: Any) -> dict:
            output = forward(data, *args, **kwargs)
            pair = mu_sigma_of(logit_of(output))
            return {**output, 'action': per_head(output, argmax) if pair is None else pair[0].clip(-1.0, 1.0)}

        return argmax_forward


class MultinomialSamplePlugin(DrawingPlugin):
    """
    Overview:
        ``output['action']`` drawn from the policy. Of logits from their softmax over the legal actions, for each row
        and head, by the exponential race: argmax(p_i / e_i) with e_i ~ Exp(1) has probabilities p, and needs no
        normalisation. Of a pair (mu, sigma) from the normal distribution: then ``action`` is the draw within [-1, 1],
        which is what an env may get, ``drawn`` the draw itself, whose probability is known, and ``logit`` a dict of
        ``mu`` and ``sigma``.
    Arguments:
        - seed (:obj:`int | None`): of the source of chance, see ``Draws``
    Shapes:
        - as ``argmax_sample``
    """

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The forward with this plugin around it."""

        def multinomial_forward(data: Any, *args: Any, **kwargs: Any) -> dict:
            output = forward(data, *args, **kwargs)
            pair = mu_sigma_of(logit_of(output))
            if pair is None:
                return {**output, 'action': per_head(output, self._choose)}
            mu, sigma = pair
            drawn = mu + sigma * self._draws.normal(mu)
            drawn = drawn.detach() if isinstance(drawn, Tensor) else drawn
            logit = {'mu': mu, 'sigma': sigma}
            return {**output, 'logit': logit, 'drawn': drawn, 'action': drawn.clip(-1.0, 1.0)}

        return multinomial_forward

    def _choose(self, logit: Any, mask: Any) -> Any:
        if type(logit) is not np.ndarray:
            return in_arrays(self._choose, logit, mask)
        return draw(logit, mask, self._draws)


class EpsMultinomialSamplePlugin(EpsGreedySamplePlugin):
    """
    Overview:
        As ``eps_greedy_sample``, but who does not explore draws from softmax(logit) over the legal actions: the policy
        is (1 - eps) softmax(logit) + eps / (number of legal actions).
    """

    def _own_choice(self, logit: np.ndarray, mask: Any) -> np.ndarray:
        return draw(logit, mask, self._draws)


def draw(logit: np.ndarray, mask: Any, draws: Draws) -> np.ndarray:
    """Legal actions drawn from the softmax of logits."""
    return (legal(logit, mask) - draws.races(logit)).argmax(-1)


def mu_sigma_of(logit: Any) -> tuple[Any, Any] | None:
    """The pair (mu, sigma) of a continuous policy, given as a tuple or a mapping; None for logits of actions."""
    if type(logit) is np.ndarray:
        return None
    if isinstance(logit, tuple):
        mu, sigma = logit
        return mu, sigma
    if isinstance(logit, Mapping) and 'mu' in logit:
        return logit['mu'], logit['sigma']
    return None
