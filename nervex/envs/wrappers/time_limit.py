"""A time limit for Gym objects that have none."""

from typing import Any

from nervex.envs.wrappers.base import GymWrapper


class TimeLimit(GymWrapper):
    """Ends an episode as ``truncated`` after ``max_episode_steps`` steps, unless it has ended by itself."""

    def __init__(self, env: Any, max_episode_steps: int) -> None:
        super().__init__(env)
        if max_episode_steps < 1:
            raise ValueError(f'time_limit: max_episode_steps must be >= 1, got {max_episode_steps}')
        self._limit, self._steps = max_episode_steps, 0

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> tuple[Any, dict]:
        """Begin an episode; answers the first observation, as the class changes it."""
        self._steps = 0
        return super().reset(seed=seed, **kwargs)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        """One step, as the class changes it."""
        obs, reward, terminated, truncated, info = super().step(action)
        self._steps += 1
        return obs, reward, terminated, bool(truncated or (self._steps >= self._limit and not terminated)), info
