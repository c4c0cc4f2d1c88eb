"""The plugin that runs a model for acting from a recording of its forward pass."""

from collections.abc import Callable
from typing import Any

from nervex.graph.acting import GraphedForward

from .plugin import IArmorStatelessPlugin


class GraphPlugin(IArmorStatelessPlugin):
    """
    Overview:
        For acting with few rows at a time: runs the model by ``GraphedForward``, without gradients, two to four times
        as fast. Takes tensors or NumPy arrays and answers in kind; the sampling plugins follow. A call with arguments
        for the model (``mode=...``) runs the model itself. Must be added before any other plugin.
    Arguments:
        - backend (:obj:`str`): 'numpy', 'py' or 'off', see ``GraphedForward``
        - after (:obj:`int`): calls that run the model itself before it is recorded
    """

    def __init__(self, backend: str = 'numpy', after: int = 0) -> None:
        self._backend, self._after, self._calls = backend, after, 0
        self._graphed: GraphedForward | None = None

    def bind(self, armor: Any) -> None:
        if 'forward' in armor.__dict__:
            raise ValueError("the plugin 'graph' replaces the call of the model itself: add it before all others")
        self._armor = armor
        self._graphed = GraphedForward(armor.model, self._backend)

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        def graph_forward(data: Any, *args: Any, **kwargs: Any) -> Any:
            kwargs.pop('data_id', None)
            if args or kwargs:
                return forward(data, *args, **kwargs)
            graphed = self._graphed
            if graphed is None or graphed.module is not self._armor.model:
                graphed = self._graphed = GraphedForward(self._armor.model, self._backend)
            self._calls += 1
            return graphed(data) if self._calls > self._after else graphed.eager(data)

        return graph_forward

    def __getstate__(self) -> dict[str, Any]:
        """A copy records anew: the recording runs on the weights of this armor's model."""
        return {**self.__dict__, '_graphed': None}

    def state_dict(self) -> dict[str, Any]:
        """The calls so far: both forms round differently, so a resumed run must change over at the same one."""
        return {'calls': self._calls}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue counting."""
        self._calls = state['calls']
