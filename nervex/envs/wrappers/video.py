"""Videos of all episodes, written while they are played."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from nervex.envs.wrappers.base import GymWrapper
from nervex.utils.errors import NervexError
from nervex.utils.film import Film, encoder


class CannotReplayError(NervexError, ValueError):
    """An env of which videos are wanted cannot draw itself."""


class EpisodeFilms:
    """
    Overview:
        A file ``episode_<n>_<pid>.mp4`` for every episode of an env; one that does not end is removed.
    Arguments:
        - draw (:obj:`Callable`): answers the present picture, or a list of which the last one counts
        - folder (:obj:`str`): where the files go
        - fps (:obj:`float`): frames per second
    """

    def __init__(self, draw: Callable[[], Any], folder: str, fps: float) -> None:
        encoder()  # what is missing is told now, not in the first episode
        self._draw, self._folder, self._fps = draw, folder, fps
        self._film: Film | None = None
        self._count = 0

    def begin(self) -> None:
        """The first picture of an episode."""
        self.drop()
        os.makedirs(self._folder, exist_ok=True)
        while self._film is None:
            path = os.path.join(self._folder, f'episode_{self._count}_{os.getpid()}.mp4')
            self._count += 1
            with suppress(FileExistsError), open(path, 'xb'):  # of another env of this process
                self._film = Film(path, self._fps)
        self.step(False)

    def step(self, ended: bool) -> None:
        """The picture behind a step."""
        if self._film is None:
            return
        picture = self._draw()
        self._film.add(np.asarray(picture[-1] if isinstance(picture, list) else picture))
        if ended:
            self._film.close()
            self._film = None

    def drop(self) -> None:
        """Remove the film of an episode that did not end."""
        if self._film is not None:
            self._film.discard()
            self._film = None


class RecordVideo(GymWrapper):
    """
    Overview:
        Films every episode of an env that was made with ``render_mode='rgb_array'``, see ``EpisodeFilms``. For the best
        and the worst of many episodes use ``nervex -m eval --video``.
    """

    def __init__(self, env: Any, folder: str, fps: float | None = None) -> None:
        super().__init__(env)
        metadata = getattr(env, 'metadata', None) or {}
        self._films = EpisodeFilms(env.render, folder, fps or metadata.get('render_fps') or 30.0)

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> tuple[Any, dict]:
        """Begin an episode, and a film of it."""
        answer = super().reset(seed=seed, **kwargs)
        self._films.begin()
        return answer

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        """One step, with its picture."""
        answer = super().step(action)
        self._films.step(answer[2] or answer[3])
        return answer

    def close(self) -> None:
        """Free what is held; may be called twice."""
        self._films.drop()
        self.env.close()


def film_episodes(env: Any, folder: str) -> None:
    """Film all following episodes of a BaseEnv that draws itself: its methods are wrapped on the object."""
    films = EpisodeFilms(env.render, folder, env.metadata.get('render_fps') or 30.0)
    reset, step, close = env.reset, env.step, env.close

    def filmed_reset(*args: Any, **kwargs: Any) -> Any:
        obs = reset(*args, **kwargs)
        films.begin()
        return obs

    def filmed_step(action: Any) -> Any:
        timestep = step(action)
        films.step(bool(timestep.done))
        return timestep

    def closed() -> None:
        films.drop()
        close()

    env.reset, env.step, env.close = filmed_reset, filmed_step, closed


class FilmedEnvs:
    """An ``env_fn`` whose envs save a replay of every episode where their config has a ``replay_path``."""

    def __init__(self, env_fn: Any) -> None:
        self.env_fn = env_fn

    def __call__(self, cfg: dict) -> Any:
        env = self.env_fn(cfg)
        if cfg.get('replay_path'):
            try:
                env.enable_save_replay(cfg['replay_path'])
            except (NotImplementedError, AttributeError) as error:
                raise CannotReplayError(f'env.replay_path: {error}; leave replay_path out') from error
        return env

    def __repr__(self) -> str:
        return repr(self.env_fn)
