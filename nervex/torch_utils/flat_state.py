"""Optimizer state over flat parameters, shown in torch's per-parameter format."""

from collections.abc import Iterable, MutableMapping

import torch

from nervex.torch_utils.flat import FlatParameters

Pieces = tuple[list, list, dict[str, list], list, list, list]


class FlatState:
    """
    Overview:
        Moments are flat tensors; ``state[p]`` holds views of them. All parameters share one step count (lockstep)
        until a loss leaves some of them out: then each gets its own, as in torch, where a parameter without gradient
        is skipped.
    Interfaces:
        whole, pieces, count, adopt
    """

    def __init__(
        self,
        flat: FlatParameters,
        state: MutableMapping,
        moments: tuple[str, ...],
        averages: bool,
        device: torch.device,
    ) -> None:
        self._flat, self._state = flat, state
        names = moments + (('grad_average',) if averages else ())
        self._tensors = {name: torch.zeros_like(flat.data) for name in names}
        self._moments, self._averages = moments, averages
        self._steps = [torch.zeros((), dtype=torch.float32, device=device)]
        self._counts = [0] * len(flat.params)  # gradients that each moving average has seen
        self.lockstep = True
        self._publish()

    def whole(self) -> Pieces:
        """The arguments of one kernel over everything."""
        averages = [self._tensors['grad_average']] if self._averages else []
        return [self._flat.data], [self._flat.grad], self._whole_moments, averages, self._steps, self._counts[:1]

    def pieces(self, unused: Iterable[int]) -> Pieces:
        """The same as lists with one entry per parameter, without the unused ones."""
        if self.lockstep:
            self._steps = [self._steps[0].clone() for _ in self._flat.params]
            self.lockstep = False
            self._publish()
        skipped = set(unused)
        used = [i for i in range(len(self._flat.params)) if i not in skipped]
        cut = {name: self._flat.views(t) for name, t in self._tensors.items()}
        grads, data = self._flat.views(self._flat.grad), self._flat.views(self._flat.data)
        averages = [cut['grad_average'][i] for i in used] if self._averages else []
        moments = {name: [cut[name][i] for i in used] for name in self._moments}
        return (
            [data[i] for i in used],
            [grads[i] for i in used],
            moments,
            averages,
            [self._steps[i] for i in used],
            [self._counts[i] for i in used],
        )

    def count(self, unused: Iterable[int]) -> None:
        """One more gradient has entered the moving averages."""
        if self._averages:
            skipped = set(unused)
            for i, p in enumerate(self._flat.params):
                if i not in skipped:
                    self._counts[i] += 1
                    self._state[p]['grad_average_steps'] = self._counts[i]

    def adopt(self, loaded: MutableMapping) -> None:
        """Take over per-parameter state, e.g. from a checkpoint, possibly of an ordinary optimizer."""
        params = self._flat.params
        for name, tensor in self._tensors.items():
            for p, view in zip(params, self._flat.views(tensor)):
                if name in loaded.get(p, {}):
                    view.copy_(loaded[p][name])
        steps = [float(loaded.get(p, {}).get('step', 0.0)) for p in params]
        self._counts = [int(loaded.get(p, {}).get('grad_average_steps', 0)) for p in params]
        self.lockstep = len(set(steps)) == 1 and len(set(self._counts)) == 1
        self._steps = [torch.full_like(self._steps[0], s) for s in (steps[:1] if self.lockstep else steps)]
        self._publish()

    def _publish(self) -> None:
        self._whole_moments = {name: [self._tensors[name]] for name in self._moments}
        cut = {name: self._flat.views(t) for name, t in self._tensors.items()}
        for i, p in enumerate(self._flat.params):
            own: dict = {name: views[i] for name, views in cut.items()}
            own['step'] = self._steps[0 if self.lockstep else i]
            if self._averages:
                own['grad_average_steps'] = self._counts[i]
            self._state[p] = own
