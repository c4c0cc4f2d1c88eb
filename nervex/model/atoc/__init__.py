"""The network of agents that learn when to communicate."""

from nervex.model.atoc.atoc import ATOC, ATOCQAC

__all__ = ['ATOC', 'ATOCQAC']
