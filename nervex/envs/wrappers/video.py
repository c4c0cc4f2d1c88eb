"""Videos of episodes, written while they are played."""
import os
from typing import Any

import numpy as np

from nervex.envs.wrappers.base import GymWrapper
from nervex.utils.errors import ExtraMissingError

BLOCK = 16  # sides of a picture must be multiples of this for the usual codecs


class EpisodeFilm:
    """
    Overview:
        Writes ``episode_<n>.mp4`` files. ``begin`` opens a file, ``add`` writes a picture, ``end`` closes it; an
        episode that was not ended is removed.
    """

    def __init__(self, folder: str, fps: float = 30.) -> None:
        try:
            import imageio.v2
            import imageio_ffmpeg  # noqa: F401  the encoder
        except ImportError as error:
            raise ExtraMissingError("a video needs imageio with ffmpeg: pip install 'nervex[video]'") from error
        self._imageio, self._folder, self._fps = imageio.v2, folder, fps
        self._writer: Any = None
        self._count = 0
        os.makedirs(folder, exist_ok=True)

    def begin(self) -> None:
        self.drop()
        self.path = os.path.join(self._folder, f'episode_{self._count}_{os.getpid()}.mp4')
        self._writer = self._imageio.get_writer(self.path, fps=self._fps, macro_block_size=1)

    def add(self, picture: Any) -> None:
        if self._writer is None:
            return
        picture = np.asarray(picture[-1] if isinstance(picture, list) else picture)
        height, width = picture.shape[:2]
        self._writer.append_data(np.pad(picture, ((0, -height % BLOCK), (0, -width % BLOCK), (0, 0)), mode='edge'))

    def end(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._count += 1

    def drop(self) -> None:
        """Close and remove an episode that did not end."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            os.remove(self.path)


class RecordVideo(GymWrapper):
    """Films every episode of an env that was made with ``render_mode='rgb_array'``."""

    def __init__(self, env: Any, folder: str, fps: float | None = None) -> None:
        super().__init__(env)
        metadata = getattr(env, 'metadata', None) or {}
        self._film = EpisodeFilm(folder, fps or metadata.get('render_fps') or 30.)

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> tuple[Any, dict]:
        answer = super().reset(seed=seed, **kwargs)
        self._film.begin()
        self._film.add(self.env.render())
        return answer

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        answer = super().step(action)
        self._film.add(self.env.render())
        if answer[2] or answer[3]:
            self._film.end()
        return answer

    def close(self) -> None:
        self._film.drop()
        self.env.close()
