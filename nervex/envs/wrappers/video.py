"""Videos of all episodes, written while they are played."""

import os
from typing import Any

import numpy as np

from nervex.envs.wrappers.base import GymWrapper
from nervex.utils.film import Film, encoder


class RecordVideo(GymWrapper):
    """
    Overview:
        Films every episode of an env that was made with ``render_mode='rgb_array'``, as ``episode_<n>_<pid>.mp4``; one
        that does not end is removed. For the best and the worst of many episodes use ``nervex -m eval --video``.
    """

    def __init__(self, env: Any, folder: str, fps: float | None = None) -> None:
        super().__init__(env)
        encoder()  # what is missing is told now, not in the first episode
        metadata = getattr(env, 'metadata', None) or {}
        self._folder, self._fps = folder, fps or metadata.get('render_fps') or 30.0
        self._film: Film | None = None
        self._count = 0

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> tuple[Any, dict]:
        """Begin an episode, and a film of it."""
        answer = super().reset(seed=seed, **kwargs)
        self._drop()
        self._film = Film(os.path.join(self._folder, f'episode_{self._count}_{os.getpid()}.mp4'), self._fps)
        self._show()
        return answer

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        """One step, with its picture."""
        answer = super().step(action)
        self._show()
        if self._film is not None and (answer[2] or answer[3]):
            self._film.close()
            self._film = None
            self._count += 1
        return answer

    def close(self) -> None:
        """Free what is held; may be called twice."""
        self._drop()
        self.env.close()

    def _show(self) -> None:
        if self._film is not None:
            picture = self.env.render()
            self._film.add(np.asarray(picture[-1] if isinstance(picture, list) else picture))

    def _drop(self) -> None:
        if self._film is not None:
            self._film.discard()
            self._film = None
