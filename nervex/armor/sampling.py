"""Plugins that turn ``logit`` into ``action``, their sources of chance, and what heads and masks mean to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

from nervex.utils.errors import UnknownNameError

from .plugin import IArmorStatelessPlugin

_BLOCK = 1024  # numbers drawn at once where few are needed a call
_FEW = 32  # rows up to which NumPy chooses faster than torch
_TINY = 1e-12  # stands for a zero that is divided by


class Draws:
    """
    Overview:
        A random generator of its own for each device that asks, all from one seed. Without a seed it takes one from
        torch's global generator, so that a run that was seeded as a whole repeats itself.
    Arguments:
        - seed (:obj:`int | None`): start of all generators
        - generator (:obj:`torch.Generator | None`): a generator to use for its device, instead of a seed
    Interfaces:
        on, coins, races, normal, state_dict, load_state_dict
    """

    def __init__(self, seed: int | None = None, generator: torch.Generator | None = None) -> None:
        if seed is not None and generator is not None:
            raise ValueError('give a seed or a generator, not both')
        self._generators: dict[torch.device, torch.Generator] = {}
        if generator is not None:
            self._generators[generator.device] = generator
            self._seed = generator.initial_seed()
        else:
            self._seed = int(torch.randint(2**62, ()).item()) if seed is None else int(seed)
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
        """Numbers uniform in [0, 1), on the CPU."""
        if len(self._coins) < count:
            generator = self.on(torch.device('cpu'))
            self._coins = torch.rand(max(count, _BLOCK), dtype=torch.float64, generator=generator).tolist()
        left = len(self._coins) - count
        taken = self._coins[left:]
        del self._coins[left:]
        return taken

    def races(self, like: Any) -> Any:
        """Logarithms of Exp(1) numbers in the shape and kind of a tensor or array; nobody writes to them."""
        if isinstance(like, Tensor):
            return torch.empty_like(like).exponential_(generator=self.on(like.device)).log_()
        if len(self._races) < like.size:
            block = torch.empty(max(like.size, _BLOCK)).exponential_(generator=self.on(torch.device('cpu')))
            self._races = block.log_().numpy()
        taken, self._races = self._races[: like.size], self._races[like.size :]
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


# ---- the samplers
class ArgmaxSamplePlugin(IArmorStatelessPlugin):
    """
    Overview:
        ``output['action']``: the legal action with the largest logit, for each row and head. A row without any legal
        action gets action 0.
    Shapes:
        - logit (:obj:`torch.FloatTensor`): :math:`(*, A)`, or a list of them; action_mask: 1 is legal, broadcasts
        - action (:obj:`torch.LongTensor`): :math:`(*)`, or a list of them; arrays for arrays
    """

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The forward with this plugin around it."""

        def argmax_forward(data: Any, *args: Any, **kwargs: Any) -> dict:
            output = forward(data, *args, **kwargs)
            return {**output, 'action': per_head(output, _argmax)}

        return argmax_forward


class _DrawingPlugin(IArmorStatelessPlugin):
    """A sampler with a source of chance of its own."""

    def __init__(self, seed: int | None = None, generator: torch.Generator | None = None) -> None:
        self._draws = Draws(seed, generator)

    def state_dict(self) -> dict[str, Any]:
        """State of the source of chance."""
        return self._draws.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue the random sequence."""
        self._draws.load_state_dict(state)


class MultinomialSamplePlugin(_DrawingPlugin):
    """
    Overview:
        ``output['action']``: drawn from softmax(logit) over the legal actions, for each row and head. Draws by the
        exponential race: argmax(p_i / e_i) with e_i ~ Exp(1) has probabilities p, and needs no normalisation.
    Arguments:
        - seed (:obj:`int | None`), generator (:obj:`torch.Generator | None`): source of chance, see ``Draws``
    Shapes:
        - as ``argmax_sample``
    """

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The forward with this plugin around it."""

        def multinomial_forward(data: Any, *args: Any, **kwargs: Any) -> dict:
            output = forward(data, *args, **kwargs)
            return {**output, 'action': per_head(output, self._choose)}

        return multinomial_forward

    def _choose(self, logit: Any, mask: Any) -> Any:
        logit = legal_logit(logit.detach() if isinstance(logit, Tensor) else logit, mask)
        return (logit - self._draws.races(logit)).argmax(-1)


class EpsGreedySamplePlugin(_DrawingPlugin):
    """
    Overview:
        With probability ``eps`` a random legal action, else the greedy one. Each row and each head tosses its own coin.
        ``eps`` is an argument of forward: a float, or an array with one value for each row (environment).
    Arguments:
        - seed (:obj:`int | None`), generator (:obj:`torch.Generator | None`): source of chance, see ``Draws``
    Shapes:
        - as ``argmax_sample``; eps: float, or the leading dims of logit, or the first ones of them
    """

    forward_kwargs = ('eps',)

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

    def _choose(self, logit: Any, mask: Any, eps: Any) -> Any:
        """One number u for each row is enough: u < eps decides, and then u / eps, uniform again, picks the action."""
        if isinstance(logit, Tensor):
            return self._explored(_argmax(logit, mask), logit, mask, eps)
        if mask is not None or logit.ndim != 2 or len(logit) > _FEW:
            legal, greedy = None if mask is None else torch.as_tensor(mask), torch.from_numpy(_argmax(logit, mask))
            return self._explored(greedy, torch.from_numpy(logit), legal, eps).numpy()
        greedy, coins = logit.argmax(1), self._draws.coins(len(logit))
        if isinstance(eps, (float, int)):
            if not coins or min(coins) >= eps:
                return greedy
            eps = [eps] * len(coins)
        else:
            eps = rows_of(eps, torch.from_numpy(logit)).tolist()
        for row, (coin, row_eps) in enumerate(zip(coins, eps)):
            if coin < row_eps:
                greedy[row] = int(coin / row_eps * logit.shape[1])
        return greedy

    def _explored(self, greedy: Tensor, logit: Tensor, mask: Tensor | None, eps: Any) -> Tensor:
        """The same for rows of any shape, with or without masks."""
        draws = self._draws.on(logit.device)
        coin = torch.rand(greedy.shape, dtype=torch.float64, device=logit.device, generator=draws)
        rows = torch.as_tensor(eps, dtype=torch.float64) if isinstance(eps, (float, int)) else rows_of(eps, logit)
        explores, share = coin < rows, coin / rows.clamp(min=_TINY)
        return torch.where(explores, _pick(share, logit.shape[-1], mask, logit.shape), greedy)


class PolicySamplePlugin(MultinomialSamplePlugin):
    """
    Overview:
        ``output['action']`` drawn from the policy: from softmax(logit), for one head or a list of them, as
        ``multinomial_sample`` does; or from a normal distribution if ``logit`` is a pair (mu, sigma). Then ``action``
        is the draw within [-1, 1], which is what an env may get, ``drawn`` the draw itself, whose probability is known,
        and ``logit`` a dict of ``mu`` and ``sigma``.
    Arguments:
        - seed (:obj:`int | None`), generator (:obj:`torch.Generator | None`): source of chance, see ``Draws``
    Shapes:
        - logit: as in ``argmax_sample``, or a pair :math:`(*, D)`; action :math:`(*)`, or :math:`(*, D)`
    """

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The forward with this plugin around it."""

        def policy_sample_forward(data: Any, *args: Any, **kwargs: Any) -> dict:
            output = forward(data, *args, **kwargs)
            pair = mu_sigma_of(output['logit'])
            if pair is None:
                return {**output, 'action': per_head(output, self._choose)}
            mu, sigma = pair
            drawn = mu + sigma * self._draws.normal(mu)
            drawn = drawn.detach() if isinstance(drawn, Tensor) else drawn
            logit = {'mu': mu, 'sigma': sigma}
            return {**output, 'logit': logit, 'drawn': drawn, 'action': drawn.clip(-1.0, 1.0)}

        return policy_sample_forward


class PolicyModePlugin(IArmorStatelessPlugin):
    """
    Overview:
        ``output['action']``: the likeliest one, the legal action with the largest logit or the mean within [-1, 1].
    Shapes:
        - as in ``policy_sample``
    """

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The forward with this plugin around it."""

        def policy_mode_forward(data: Any, *args: Any, **kwargs: Any) -> dict:
            output = forward(data, *args, **kwargs)
            pair = mu_sigma_of(output['logit'])
            return {**output, 'action': per_head(output, _argmax) if pair is None else pair[0].clip(-1.0, 1.0)}

        return policy_mode_forward


def mu_sigma_of(logit: Any) -> tuple[Any, Any] | None:
    """The pair (mu, sigma) of a continuous policy, given as a tuple or a mapping; None for logits of actions."""
    if isinstance(logit, tuple):
        mu, sigma = logit
        return mu, sigma
    if isinstance(logit, Mapping) and 'mu' in logit:
        return logit['mu'], logit['sigma']
    return None


# ---- heads, rows, masks
def per_head(output: Any, choose: Callable[..., Any], *args: Any) -> Any:
    """
    Overview:
        Choose an action for each action head of a model's output.
    Arguments:
        - output (:obj:`dict`): ``logit`` a tensor (one head) or a list of tensors; ``action_mask`` likewise, optional.
          Arrays may stand for tensors
        - choose (:obj:`Callable`): ``choose(logit, mask, *args) -> action``, for tensors of any shape on any device and
          for arrays
    Returns:
        - action (:obj:`torch.LongTensor | list`): a list if the logits are a list, arrays for arrays
    """
    try:
        logit = output['logit']
    except (KeyError, TypeError, IndexError) as error:
        got = sorted(output) if isinstance(output, dict) else type(output).__name__
        raise UnknownNameError(f"sampling an action needs a model output dict with 'logit', got {got}") from error
    mask = output.get('action_mask')
    if type(logit) is np.ndarray and mask is None:
        return choose(logit, None, *args)
    if isinstance(logit, (np.ndarray, Tensor)):
        if mask is not None and not isinstance(mask, (Tensor, np.ndarray)):
            raise ValueError(f'one logit tensor needs one action_mask tensor, got a {type(mask).__name__}')
        return _of_head(logit, mask, choose, args)
    if not isinstance(logit, list):
        raise TypeError(
            f'logit is one tensor or a list of them, got a {type(logit).__name__}: a pair (mu, sigma) '
            'belongs to continuous actions, which these plugins do not sample'
        )
    masks = [None] * len(logit) if mask is None else mask
    if isinstance(masks, (Tensor, np.ndarray)) or len(masks) != len(logit):
        raise ValueError(f'{len(logit)} action heads need a list of {len(logit)} action masks (None: all legal)')
    return [_of_head(head, head_mask, choose, args) for head, head_mask in zip(logit, masks)]


def _of_head(logit: Any, mask: Any, choose: Callable[..., Any], args: tuple) -> Any:
    if isinstance(logit, Tensor):
        few_rows = mask is None and logit.is_cpu and logit.dim() == 2 and len(logit) <= _FEW
        # what records tensor operations does not see those of NumPy and would freeze their results
        if few_rows and logit.dtype is torch.float32 and not is_in_torch_dispatch_mode():
            return torch.from_numpy(choose(logit.detach().numpy(), None, *args))
        mask = torch.as_tensor(mask) if isinstance(mask, np.ndarray) else mask
    return choose(logit, mask, *args)


def _argmax(logit: Any, mask: Any) -> Any:
    return legal_logit(logit, mask).argmax(-1)


def legal_logit(logit: Any, mask: Any) -> Any:
    """A copy of the logits with illegal actions (mask 0) at minus infinity; the stored logits stay as they are."""
    if mask is None:
        return logit
    if mask.shape[-1] != logit.shape[-1]:
        raise ValueError(f'action_mask {tuple(mask.shape)} does not fit logit {tuple(logit.shape)}: last dims differ')
    if isinstance(logit, Tensor):
        return logit.masked_fill(mask == 0, float('-inf'))
    return np.where(np.asarray(mask) == 0, logit.dtype.type('-inf'), logit)


def rows_of(value: Any, logit: Tensor) -> Tensor:
    """
    Overview:
        A per-row probability (an epsilon for each environment) as a tensor that broadcasts over the rows of ``logit``.
        It may have all leading dims of the logits, or only the first ones (one epsilon for all agents of an env).
    """
    lead = logit.shape[:-1]
    tensor = torch.as_tensor(value, dtype=torch.float64)
    if tensor.device.type == 'cpu' and tensor.numel() and not 0.0 <= tensor.min() <= tensor.max() <= 1.0:
        raise ValueError(f'each row needs a probability between 0 and 1, got {tensor.tolist()}')
    tensor = tensor.to(logit.device)
    if tensor.shape != lead[: tensor.dim()]:
        raise ValueError(f'a per-row value of shape {tuple(tensor.shape)} does not fit rows of shape {tuple(lead)}')
    return tensor.reshape(tensor.shape + (1,) * (len(lead) - tensor.dim())).expand(lead)


def _pick(share: Tensor, actions: int, mask: Tensor | None, shape: torch.Size) -> Tensor:
    """The action that a number in [0, 1) stands for, uniform over the legal ones; from 1 on the last legal one."""
    if mask is None:
        return share.mul_(actions).long().clamp_(max=actions - 1)
    legal = (mask != 0).expand(shape)
    count = legal.sum(-1)
    nth = share.mul_(count).long().minimum(count - 1)
    return (legal.cumsum(-1) > nth.unsqueeze(-1)).long().argmax(-1)
