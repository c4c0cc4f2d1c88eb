"""Small games of poker, and best responses in them."""

from app_zoo.poker.envs.best_response import average, exploitability, tabulate
from app_zoo.poker.envs.poker import KuhnPoker, LeducPoker, Poker

__all__ = ['KuhnPoker', 'LeducPoker', 'Poker', 'average', 'exploitability', 'tabulate']
