"""Videos of the best and the worst of many episodes, written to disk while they are played."""

from __future__ import annotations

import contextlib
import os
import subprocess
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nervex.utils.film import Film, encoder

_GIF_FPS, _GIF_WIDTH = 25, 480


@dataclass
class _Episode:
    """One episode on disk."""

    film: Film
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
        if kind is not None:
            encoder()  # what is missing is told now
        self._folder, self._stem, self._kind, self._fps = folder, stem, kind, fps
        self._running: dict[int, _Episode] = {}
        self._best: _Episode | None = None
        self._worst: _Episode | None = None
        self._count = 0
        self._error: Exception | None = None

    def begin(self, key: int) -> None:
        """A new episode; one of this key that did not end is dropped."""
        self._drop(self._running.pop(key, None))
        if self._error is None:
            self._try(self._open, key)

    def _open(self, key: int) -> None:
        self._count += 1
        path = os.path.join(self._folder, f'.episode_{os.getpid()}_{self._count}.mp4')
        self._running[key] = _Episode(Film(path, self._fps))

    def frame(self, key: int, picture: np.ndarray) -> None:
        """The next frame of a running episode."""
        episode = self._running.get(key)
        if episode is not None:
            self._try(episode.film.add, picture)

    def end(self, key: int, episode_return: float) -> None:
        """The episode is over: keep it if it is the best or the worst so far."""
        episode = self._running.pop(key, None)
        if episode is None:
            return
        episode.episode_return = episode_return
        self._try(episode.film.close)
        old = [self._best, self._worst]
        if self._best is None or episode_return > self._best.episode_return:
            self._best = episode
        if self._worst is None or episode_return <= self._worst.episode_return:
            self._worst = episode
        for gone in [*old, episode]:
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
        for what, episode in (('best', self._best), ('worst', self._worst)):
            if episode is None or (what == 'worst' and episode is self._best):
                continue
            name = f'{self._stem}-{what}-{episode.episode_return:.6g}.{self._kind}'
            videos[what] = os.path.join(self._folder, name)
            if self._kind == 'gif':
                mp4_to_gif(episode.film.path, videos[what])
            else:
                os.replace(episode.film.path, videos[what])
        return videos

    def _drop(self, episode: _Episode | None) -> None:
        if episode is not None:
            episode.film.discard()

    def close(self) -> None:
        """Remove what was not named by ``finish``; closing twice is fine."""
        for episode in (*self._running.values(), self._best, self._worst):
            self._drop(episode)
        self._running.clear()

    def __enter__(self) -> Album:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


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
