"""A BaseEnv in the form of Gymnasium, for its wrappers and for other libraries."""

from typing import Any

import gymnasium

from nervex.envs.env.base_env import BaseEnv


class GymView(gymnasium.Env):
    """``reset`` answers (obs, info), ``step`` five values with a float reward; everything else is the env's own."""

    def __init__(self, env: BaseEnv) -> None:
        self.env = env
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.metadata, self.spec, self.render_mode = env.metadata, env.spec, env.render_mode

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        """Begin an episode."""
        if seed is not None:
            self.env.seed(seed)
        return self.env.reset(**({} if options is None else {'options': options})), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        """One step; an end that only a time limit made is ``truncated``."""
        obs, reward, done, info = self.env.step(action)
        cut = bool(done and info.get('truncated', False))
        return obs, float(reward.sum()), bool(done and not cut), cut, info

    def render(self) -> Any:
        """What the env draws."""
        return self.env.render()

    def close(self) -> None:
        """Passed on."""
        self.env.close()
