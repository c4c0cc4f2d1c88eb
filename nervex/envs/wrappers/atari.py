"""The usual preprocessing of Atari games (Mnih et al. 2015, doi:10.1038/nature14236; Machado et al. 2018)."""

from collections import deque
from typing import Any

import numpy as np

from nervex.envs.wrappers.base import ActionRepeat, GymWrapper, TimeLimit
from nervex.utils.errors import ExtraMissingError


class _Presses(GymWrapper):
    """Steps that belong to the beginning of an episode."""

    def _press(self, action: int, **kwargs: Any) -> tuple[Any, dict]:
        """One step; a game that is over with it begins again."""
        obs, _, terminated, truncated, info = super().step(action)
        return super().reset(**kwargs) if terminated or truncated else (obs, info)


class NoopReset(_Presses):
    """An episode begins with 1 to ``noop_max`` steps without action; how many is drawn from the env's seed."""

    def __init__(self, env: Any, noop_max: int = 30) -> None:
        super().__init__(env)
        self._noop_max, self._rng = noop_max, np.random.default_rng()

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> tuple[Any, dict]:
        """Begin an episode, and wait."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        answer = super().reset(seed=seed, **kwargs)
        for _ in range(int(self._rng.integers(1, self._noop_max + 1))):
            answer = self._press(0, **kwargs)
        return answer


class MaxAndSkip(ActionRepeat):
    """An action is repeated ``skip`` times; the pixel-wise maximum of the last two frames is seen (sprites flicker)."""

    def __init__(self, env: Any, skip: int = 4) -> None:
        super().__init__(env, skip)

    def shown(self, seen: list[Any]) -> Any:
        """The brighter pixels."""
        return np.maximum.reduce(seen)


class EpisodicLife(_Presses):
    """A lost life ends an episode, for training only, and the game goes on with the next; other ends are the game's."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._lives, self._goes_on = 0, False

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        """One step, as the class changes it."""
        obs, reward, terminated, truncated, info = super().step(action)
        lives = self.env.unwrapped.ale.lives()
        lost, self._lives = 0 < lives < self._lives, lives
        self._goes_on = lost and not (terminated or truncated)
        return obs, reward, terminated or lost, truncated, info

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> tuple[Any, dict]:
        """Begin an episode: a game, or the next life."""
        onward = self._goes_on and seed is None
        answer = self._press(0, **kwargs) if onward else super().reset(seed=seed, **kwargs)
        self._goes_on, self._lives = False, self.env.unwrapped.ale.lives()
        return answer


class FireReset(_Presses):
    """
    Overview:
        Presses FIRE in games that wait for it, after a reset and in place of the first action of a further life; other
        games are left alone.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._fires = waits_for_fire(env)
        self._lives, self._waits = 0, False

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        """One step, as the class changes it."""
        answer = super().step(1 if self._waits else action)
        if self._fires:
            lives = self.env.unwrapped.ale.lives()
            self._waits, self._lives = 0 < lives < self._lives, lives
        return answer

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> tuple[Any, dict]:
        """Begin an episode, and fire."""
        answer = super().reset(seed=seed, **kwargs)
        if self._fires:
            answer = self._press(1, **kwargs)
            self._waits, self._lives = False, self.env.unwrapped.ale.lives()
        return answer


class WarpFrame(GymWrapper):
    """Frames in grey, ``size`` x ``size``."""

    def __init__(self, env: Any, size: int = 84) -> None:
        super().__init__(env)
        try:
            import cv2
        except ImportError as error:
            raise ExtraMissingError('warp_frame needs OpenCV: pip install nervex[atari]') from error
        self._cv2, self._size = cv2, size
        self.observation_space = _space((size, size), 0, 255, np.uint8)

    def observation(self, obs: Any) -> np.ndarray:
        """The small grey frame."""
        if obs.ndim == 3 and obs.shape[2] == 3:
            obs = self._cv2.cvtColor(obs, self._cv2.COLOR_RGB2GRAY)
        return self._cv2.resize(obs, (self._size, self._size), interpolation=self._cv2.INTER_AREA)


class ScaledFloat(GymWrapper):
    """uint8 pixels as floats in [0, 1]. Four times the memory; models do the same to uint8 on their device."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.observation_space = _space(env.observation_space.shape, 0.0, 1.0, np.float32)

    def observation(self, obs: Any) -> np.ndarray:
        """The scaled frame."""
        return np.asarray(obs, np.float32) / 255.0


class ClipReward(GymWrapper):
    """Only the sign of a reward; the true return of the episode is kept in ``info['final_eval_reward']``."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._return = 0.0

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> tuple[Any, dict]:
        """Begin an episode."""
        self._return = 0.0
        return super().reset(seed=seed, **kwargs)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        """One step, as the class changes it."""
        obs, reward, terminated, truncated, info = super().step(action)
        self._return += float(reward)
        if terminated or truncated:
            info = {**info, 'final_eval_reward': self._return}
        return obs, float(np.sign(reward)), terminated, truncated, info


class FrameStack(GymWrapper):
    """The last ``n`` observations, oldest first, along a new first axis; at a reset the first one n times."""

    def __init__(self, env: Any, n: int = 4) -> None:
        super().__init__(env)
        self._num, self._frames = n, deque[Any](maxlen=n)
        space = env.observation_space
        low, high = (np.repeat(np.asarray(b)[None], n, 0) for b in (space.low, space.high))
        self.observation_space = _space((n, *space.shape), low, high, space.dtype)

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> tuple[Any, dict]:
        """Begin an episode."""
        self._frames.clear()
        return super().reset(seed=seed, **kwargs)

    def observation(self, obs: Any) -> np.ndarray:
        """The stack."""
        self._frames.extend([obs] * (1 if self._frames else self._num))
        return np.stack(self._frames)


def wrap_atari(
    env: Any,
    role: str | None = None,
    frame_stack: int = 4,
    size: int = 84,
    skip: int = 4,
    noop_max: int = 30,
    episodic_life: bool = True,
    clip_reward: bool = True,
    scale: bool = False,
    max_steps: int | None = None,
) -> Any:
    """
    Overview:
        The whole set, in its usual order. Lives end episodes and rewards are clipped for actors only.
    Arguments:
        - env (:obj:`Any`): a raw game: made with ``frameskip=1, repeat_action_probability=0.`` (or a NoFrameskip id)
        - role (:obj:`str | None`): 'evaluator' plays whole games for their true score
        - max_steps (:obj:`int | None`): after so many steps a game is cut off, with all of its lives; None: never
    """
    trains = role != 'evaluator'
    env = FireReset(MaxAndSkip(NoopReset(env, noop_max), skip))
    if max_steps is not None:
        env = TimeLimit(env, max_steps)
    if episodic_life and trains:
        env = EpisodicLife(env)
    env = WarpFrame(env, size)
    if scale:
        env = ScaledFloat(env)
    if clip_reward and trains:
        env = ClipReward(env)
    return FrameStack(env, frame_stack)


def waits_for_fire(env: Any) -> bool:
    """Whether a game and its further lives begin with FIRE."""
    meanings = env.unwrapped.get_action_meanings()
    return len(meanings) >= 3 and meanings[1] == 'FIRE'


def _space(shape: tuple[int, ...], low: Any, high: Any, dtype: Any) -> Any:
    from gymnasium.spaces import Box

    return Box(low, high, shape=tuple(shape), dtype=np.dtype(dtype).type)
