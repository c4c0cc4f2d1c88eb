"""Hindsight experience replay: what if the goal had been what was reached?"""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

Split = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor, torch.Tensor]]
Merge = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
GoalReward = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def split_halves(obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """State, desired goal and achieved goal (n, ) of ``concat(state, goal)`` (2 n, ): the state itself is achieved."""
    obs = torch.as_tensor(obs)
    half = obs.shape[-1] // 2
    return obs[..., :half], obs[..., half:], obs[..., :half]


def merge_halves(state: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    """The inverse of :func:`split_halves`: ``concat(state, goal)``."""
    return torch.cat([state, goal], dim=-1)


def reached(achieved: torch.Tensor, desired: torch.Tensor) -> torch.Tensor:
    """Reward (1, ): 1 where the goal (n, ) is reached exactly, otherwise 0."""
    return (achieved == desired).all(dim=-1, keepdim=True).float()


def within(tolerance: float, achieved: torch.Tensor, desired: torch.Tensor) -> torch.Tensor:
    """Reward (1, ): 1 where what is achieved is no further than ``tolerance`` from the goal (n, ), otherwise 0."""
    return ((achieved - desired).norm(dim=-1, keepdim=True) <= tolerance).float()


def goal_sources(strategy: str, steps: int, k: int, generator: np.random.Generator) -> np.ndarray:
    """For each step the k steps, (steps, k), whose outcome becomes the new goal; ``strategy`` as of the Adder."""
    if strategy == 'final':
        return np.full((steps, k), steps - 1)
    first = np.arange(steps)[:, None] if strategy == 'future' else np.zeros((steps, 1), np.int64)
    return generator.integers(first, steps, size=(steps, k))


def relabel(
    rows: Sequence[dict],
    sources: np.ndarray,
    merge_func: Merge | None = None,
    split_func: Split | None = None,
    goal_reward_func: GoalReward | None = None,
    ends_at_goal: bool = True,
) -> list[dict]:
    """
    Overview:
        The rows of one episode again, with other goals. The reward compares the new goal with what the step led to,
        its ``next_obs``. Hindsight Experience Replay (arXiv:1707.01495).
    Arguments:
        - rows (:obj:`Sequence[dict]`): with obs, next_obs, reward, done
        - sources (:obj:`np.ndarray`): from :func:`goal_sources`
        - merge_func (:obj:`Callable | None`): (state, goal) -> obs; None is :func:`merge_halves`
        - split_func (:obj:`Callable | None`): obs -> (state, desired goal, achieved goal); None is :func:`split_halves`
        - goal_reward_func (:obj:`Callable | None`): (achieved, desired) -> reward; None is :func:`reached`
        - ends_at_goal (:obj:`bool`): reaching the new goal ends the episode, and the end at the old goal is none any
          more
    Returns:
        - rows (:obj:`list[dict]`): k new rows for each row, in the order of the rows
    """
    merge, split, reward_of = merge_func or merge_halves, split_func or split_halves, goal_reward_func or reached
    before = [split(row['obs']) for row in rows]
    after = [split(row['next_obs']) for row in rows]
    result = []
    for t, row in enumerate(rows):
        for source in sources[t]:
            goal = after[source][2]
            reward = reward_of(after[t][2], goal)
            new: dict[str, Any] = {key: copy.copy(value) for key, value in row.items()}
            new.update(obs=merge(before[t][0], goal), next_obs=merge(after[t][0], goal), reward=reward)
            if ends_at_goal:
                success = bool(torch.as_tensor(reward).reshape(-1)[0] > 0)
                new['done'] = _flag_like(row['done'], success)
                if 'truncated' in row:
                    new['truncated'] = _flag_like(row['truncated'], False)
            result.append(new)
    return result


def _flag_like(old: Any, flag: bool) -> Any:
    return torch.full_like(old, flag) if isinstance(old, torch.Tensor) else type(old)(flag)
