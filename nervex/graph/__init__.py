"""Updates and acting as recorded graphs: the only place that knows torch's private parts (see docs/en/graph.md)."""

from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.graph.acting': 'GraphedForward',
    'nervex.graph.matmul': 'FastMatmul',
    'nervex.graph.update': 'GraphedLoss Update',
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, _HOMES)
