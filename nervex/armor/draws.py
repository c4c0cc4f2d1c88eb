"""Sources of chance for plugins."""

from typing import Any

import numpy as np
import torch

_BLOCK = 1024  # numbers drawn at once where few are needed a call


class Draws:
    """
    Overview:
        A random generator of its own for each device that asks, all from one seed. Without a seed it takes one from
        torch's global generator, so that a run that was seeded as a whole repeats itself.
    Arguments:
        - seed (:obj:`int | None`): start of all generators
        - generator (:obj:`torch.Generator | None`): a generator to use for its device, instead of a seed
    Interfaces:
        on, coins, races, state_dict, load_state_dict
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
        taken = self._coins[-count:] if count else []
        del self._coins[len(self._coins) - count :]
        return taken

    def races(self, count: int) -> np.ndarray:
        """Logarithms of Exp(1) numbers, on the CPU; the caller does not write to them."""
        if len(self._races) < count:
            block = torch.empty(max(count, _BLOCK)).exponential_(generator=self.on(torch.device('cpu')))
            self._races = block.log_().numpy()
        taken, self._races = self._races[:count], self._races[count:]
        return taken

    def normal(self, like: Any) -> Any:
        """Standard normal numbers in the shape, kind and dtype of a tensor or array."""
        if isinstance(like, torch.Tensor):
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
