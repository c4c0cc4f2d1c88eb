"""Random draws and action masks, shared by the sampling plugins: one head or several, any leading dims."""
from typing import Any

import torch
from torch import Tensor

from nervex.utils.errors import UnknownNameError


class DrawsPerDevice:
    """
    Overview:
        A random generator of its own for each device that asks, all from one seed. Without a seed it takes one from
        torch's global generator, so that a run that was seeded as a whole repeats itself.
    """

    def __init__(self, seed: int | None = None, generator: torch.Generator | None = None) -> None:
        if seed is not None and generator is not None:
            raise ValueError('give a seed or a generator, not both')
        self._generators: dict[torch.device, torch.Generator] = {}
        if generator is not None:
            self._generators[generator.device] = generator
            self._seed = generator.initial_seed()
        else:
            self._seed = int(torch.randint(2 ** 62, ()).item()) if seed is None else int(seed)

    def on(self, device: torch.device) -> torch.Generator:
        """The generator of one device."""
        found = self._generators.get(device)
        if found is None:
            found = self._generators[device] = torch.Generator(device)
            found.manual_seed(self._seed)
        return found

    def state_dict(self) -> dict[str, Any]:
        """Seed and the state of each generator."""
        return {'seed': self._seed, 'states': {str(d): g.get_state() for d, g in self._generators.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where ``state_dict`` was taken."""
        self._seed = state['seed']
        for name, value in state['states'].items():
            self.on(torch.device(name)).set_state(value)


def row_ids(data_id: Any) -> list[int]:
    """Ids of rows, given as a list, an array, a tensor or one int, as a list."""
    if isinstance(data_id, int):
        return [data_id]
    return [int(i) for i in (data_id.tolist() if hasattr(data_id, 'tolist') else data_id)]


def per_head(output: Any, choose: Any) -> Any:
    """
    Overview:
        Apply ``choose(logit, mask)`` to each action head of a model's output.
    Arguments:
        - output (:obj:`dict`): ``logit`` a tensor (one head) or a list of tensors; ``action_mask`` likewise, optional
    Returns:
        - action (:obj:`torch.LongTensor | list`): a list if the logits are a list
    """
    try:
        logit = output['logit']
    except (KeyError, TypeError, IndexError) as error:
        got = sorted(output) if isinstance(output, dict) else type(output).__name__
        raise UnknownNameError(f"sampling an action needs a model output dict with 'logit', got {got}") from error
    mask = output.get('action_mask')
    if isinstance(logit, Tensor):
        if mask is not None and not isinstance(mask, Tensor):
            raise ValueError(f'one logit tensor needs one action_mask tensor, got a {type(mask).__name__}')
        return choose(logit, mask)
    if not isinstance(logit, list):
        raise TypeError(f'logit is one tensor or a list of them, got a {type(logit).__name__}: a pair (mu, sigma) '
                        'belongs to continuous actions, which these plugins do not sample')
    masks = [None] * len(logit) if mask is None else mask
    if isinstance(masks, Tensor) or len(masks) != len(logit):
        raise ValueError(f'{len(logit)} action heads need a list of {len(logit)} action masks (None: all legal)')
    return [choose(head, head_mask) for head, head_mask in zip(logit, masks)]


def legal_logit(logit: Tensor, mask: Tensor | None) -> Tensor:
    """A copy of the logits with illegal actions (mask 0) at minus infinity; the stored logits stay as they are."""
    if mask is None:
        return logit
    if mask.shape[-1] != logit.shape[-1]:
        raise ValueError(f'action_mask {tuple(mask.shape)} does not fit logit {tuple(logit.shape)}: last dims differ')
    return logit.masked_fill(mask == 0, float('-inf'))


def rows_of(value: Any, logit: Tensor) -> Tensor:
    """
    Overview:
        A per-row probability (an epsilon for each environment) as a tensor that broadcasts over the rows of ``logit``.
        It may have all leading dims of the logits, or only the first ones (one epsilon for all agents of an env).
    """
    lead = logit.shape[:-1]
    tensor = torch.as_tensor(value, dtype=torch.float64)
    if tensor.device.type == 'cpu' and tensor.numel() and not 0. <= tensor.min() <= tensor.max() <= 1.:
        raise ValueError(f'each row needs a probability between 0 and 1, got {tensor.tolist()}')
    tensor = tensor.to(logit.device)
    if tensor.shape != lead[:tensor.dim()]:
        raise ValueError(f'a per-row value of shape {tuple(tensor.shape)} does not fit rows of shape {tuple(lead)}')
    return tensor.reshape(tensor.shape + (1, ) * (len(lead) - tensor.dim())).expand(lead)
