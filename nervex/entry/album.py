"""Videos of the best and the worst of many episodes, written to disk while they are played."""

from __future__ import annotations

import contextlib
import os
import subprocess
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nervex.utils import ExtraMissingError

_BLOCK = 16  # codecs want sides that are multiples of it
_GIF_FPS, _GIF_WIDTH = 25, 480


@dataclass
class _Film:
    """One episode on disk."""

    path: str
    writer: Any
    episode_return: float = field(default=float('nan'))


class Album:
    """
    Overview:
        Every running episode is written to a file of its own; of the finished ones only the best and the worst stay. No
        frames are kept in memory, however long an episode is. A context manager that leaves no half-made file.
    Arguments:
        - folder (:obj:`str`): where the files go; made when the first episode begins
        - stem (:obj:`str`): beginning of the files' names
        - kind (:obj:`str | None`): 'mp4', 'gif', or None for no file at all
        - fps (:obj:`float`): frames per second
    Interfaces:
        begin, frame, end, finish, close
    """

    def __init__(self, folder: str, stem: str, kind: str | None, fps: float) -> None:
        if kind not in ('mp4', 'gif', None):
            raise ValueError(f"video: got {kind!r}, must be 'mp4', 'gif' or None")
        self._imageio: Any = None if kind is None else _imageio()
        self._folder, self._stem, self._kind, self._fps = folder, stem, kind, fps
        self._running: dict[int, _Film] = {}
        self._best: _Film | None = None
        self._worst: _Film | None = None
        self._count = 0
        self._error: Exception | None = None

    def begin(self, key: int) -> None:
        """A new episode; one of this key that did not end is dropped."""
        self._drop(self._running.pop(key, None))
        if self._error is None:
            self._try(self._open, key)

    def _open(self, key: int) -> None:
        os.makedirs(self._folder, exist_ok=True)
        self._count += 1
        path = os.path.join(self._folder, f'.episode_{os.getpid()}_{self._count}.mp4')
        writer = self._imageio.get_writer(
            path, format='FFMPEG', fps=self._fps, macro_block_size=1, output_params=['-preset', 'veryfast']
        )
        self._running[key] = _Film(path, writer)

    def frame(self, key: int, picture: np.ndarray) -> None:
        """The next frame of a running episode."""
        film = self._running.get(key)
        if film is not None:
            self._try(film.writer.append_data, padded(picture))

    def end(self, key: int, episode_return: float) -> None:
        """The episode is over: keep it if it is the best or the worst so far."""
        film = self._running.pop(key, None)
        if film is None:
            return
        film.episode_return = episode_return
        self._try(film.writer.close)
        old = [self._best, self._worst]
        if self._best is None or episode_return > self._best.episode_return:
            self._best = film
        if self._worst is None or episode_return <= self._worst.episode_return:
            self._worst = film
        for gone in [*old, film]:
            if gone is not self._best and gone is not self._worst:
                self._drop(gone)

    def _try(self, function: Any, *args: Any) -> None:
        """What goes wrong with a file is told at the end, in its own words, and not taken for a fault of the env."""
        try:
            function(*args)
        except (OSError, ValueError, RuntimeError) as e:
            self._error = self._error or e

    def finish(self) -> dict[str, str]:
        """
        Overview:
            Give the files their names.
        Returns:
            - videos (:obj:`dict`): 'best' and (if there was more than one episode) 'worst' -> path
        """
        if self._error is not None:
            raise OSError(f'{self._folder}: the video cannot be written: {self._error}') from self._error
        videos = {}
        for what, film in (('best', self._best), ('worst', self._worst)):
            if film is None or (what == 'worst' and film is self._best):
                continue
            name = f'{self._stem}-{what}-{film.episode_return:.6g}.{self._kind}'
            videos[what] = os.path.join(self._folder, name)
            if self._kind == 'gif':
                mp4_to_gif(film.path, videos[what])
            else:
                os.replace(film.path, videos[what])
        return videos

    def _drop(self, film: _Film | None) -> None:
        if film is not None:
            with contextlib.suppress(OSError):  # the encoder died: its file goes all the same
                film.writer.close()
            with contextlib.suppress(FileNotFoundError):
                os.remove(film.path)

    def close(self) -> None:
        """Remove what was not named by ``finish``; closing twice is fine."""
        for film in (*self._running.values(), self._best, self._worst):
            self._drop(film)
        self._running.clear()

    def __enter__(self) -> Album:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


def padded(picture: np.ndarray) -> np.ndarray:
    """The picture with its last row and column repeated until both sides are multiples of 16."""
    height, width = picture.shape[:2]
    return np.pad(picture, ((0, -height % _BLOCK), (0, -width % _BLOCK), (0, 0)), mode='edge')


def mp4_to_gif(source: str, target: str) -> None:
    """At most 25 frames a second and 480 pixels wide, with a palette of its own; frames are never all in memory."""
    import imageio_ffmpeg

    ffmpeg = [imageio_ffmpeg.get_ffmpeg_exe(), '-y', '-loglevel', 'error', '-i', source]
    scaled = f'fps={_GIF_FPS},scale=min({_GIF_WIDTH}\\,iw):-1:flags=lanczos'
    palette = f'{source}.png'
    try:
        _run([*ffmpeg, '-vf', f'{scaled},palettegen', palette])
        _run([*ffmpeg, '-i', palette, '-lavfi', f'{scaled}[frames];[frames][1:v]paletteuse', target])
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(palette)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f'ffmpeg: {done.stderr.strip()}')


def _imageio() -> Any:
    try:
        import imageio.v2
        import imageio_ffmpeg  # noqa: F401  the encoder
    except ImportError as e:
        raise ExtraMissingError(f"a video needs imageio with ffmpeg: pip install 'nervex[video]' ({e})") from e
    return imageio.v2
