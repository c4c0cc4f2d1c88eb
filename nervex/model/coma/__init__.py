"""The network of counterfactual multi-agent policy gradients."""

from nervex.model.coma.coma import ComaNetwork

__all__ = ['ComaNetwork']
