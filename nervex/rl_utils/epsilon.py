"""Exploration: how epsilon falls."""

import math
from collections.abc import Callable


def epsilon_greedy(start: float, end: float, decay: int, type_: str = 'exp') -> Callable[[int], float]:
    """
    Overview:
        A schedule of epsilon. ``exp``: :math:`(start - end) e^{-x / decay} + end`; ``linear``: from start to end within
        ``decay`` steps, then constant. Playing Atari with Deep Reinforcement Learning (arXiv:1312.5602).
    Arguments:
        - start, end (:obj:`float`): first and last value, in [0, 1], ``start >= end``
        - decay (:obj:`int`): time constant, or length of the linear part, in the unit of x
        - type_ (:obj:`str`): ``'exp'`` or ``'linear'``
    Returns:
        - schedule (:obj:`Callable[[int], float]`): x -> epsilon
    Shapes:
        - x: one number, epsilon: one float
    """
    if type_ not in ('exp', 'linear'):
        raise ValueError(f"epsilon_greedy: unknown type_ {type_!r}; use 'exp' or 'linear'")
    if not 0.0 <= end <= start <= 1.0:
        raise ValueError(f'epsilon_greedy: needs 0 <= end <= start <= 1, got start={start}, end={end}')
    if decay <= 0:
        raise ValueError(f'epsilon_greedy: decay must be positive, got {decay}')
    span = start - end

    def exponential(x: int) -> float:
        return span * math.exp(-x / decay) + end

    def linear(x: int) -> float:
        return end if x >= decay else start - span * x / decay

    return exponential if type_ == 'exp' else linear


get_epsilon_greedy_fn = epsilon_greedy
