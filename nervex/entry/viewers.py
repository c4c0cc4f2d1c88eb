"""Who may watch episodes: an album that keeps the best and the worst as videos, and a window that shows all of them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from nervex.utils import ExtraMissingError, NervexError
from nervex.utils.film import Film, encoder

_GIF_FPS, _GIF_WIDTH = 25, 480


class Album:
    """
    Overview:
        Every running episode is written to a file of its own; of the finished ones only the best and the worst stay. No
        frames are kept in memory, however long an episode is. A context manager that leaves no half-made file.
    Arguments:
        - folder (:obj:`str`): where the files go; made when the first episode begins
        - stem (:obj:`str`): beginning of the files' names
        - kind (:obj:`str`): 'mp4' or 'gif'
        - fps (:obj:`float`): frames per second
    Interfaces:
        begin, frame, end, finish
    """

    def __init__(self, folder: str, stem: str, kind: str, fps: float) -> None:
        if kind not in ('mp4', 'gif'):
            raise ValueError(f"video: got {kind!r}, must be 'mp4', 'gif' or None")
        encoder()  # what is missing is told now
        self._folder, self._stem, self._kind, self._fps = folder, stem, kind, fps
        self._running: dict[int, Film] = {}
        self._kept: dict[str, tuple[float, Film]] = {}  # 'best' and 'worst' -> return and film, maybe the same one
        self._count = 0
        self._error: Exception | None = None

    def _try(self, function: Callable[[], None]) -> None:
        """What goes wrong with a file is told at the end, in its own words, and not taken for a fault of the env."""
        try:
            function()
        except (OSError, ValueError, RuntimeError) as e:
            self._error = self._error or e

    def begin(self, key: int) -> None:
        """A new episode; one of this key that did not end is dropped."""
        if key in self._running:
            self._running.pop(key).discard()
        self._count += 1
        path = os.path.join(self._folder, f'.episode_{os.getpid()}_{self._count}.mp4')
        if self._error is None:
            self._try(lambda: self._running.update({key: Film(path, self._fps)}))

    def frame(self, key: int, picture: np.ndarray) -> None:
        """The next frame of a running episode."""
        if key in self._running:
            self._try(lambda: self._running[key].add(picture))

    def end(self, key: int, episode_return: float) -> None:
        """The episode is over: keep it if it is the best or the worst so far."""
        film = self._running.pop(key, None)
        if film is None:
            return
        self._try(film.close)
        before = [film, *(kept for _, kept in self._kept.values())]
        if not self._kept or episode_return > self._kept['best'][0]:
            self._kept['best'] = episode_return, film
        if 'worst' not in self._kept or episode_return <= self._kept['worst'][0]:
            self._kept['worst'] = episode_return, film
        for gone in before:
            if all(gone is not kept for _, kept in self._kept.values()):
                gone.discard()

    def finish(self) -> dict[str, str]:
        """Give the files their names; answers 'best' and (of more than one episode) 'worst' -> path."""
        if self._error is not None:
            raise OSError(f'{self._folder}: the video cannot be written: {self._error}') from self._error
        videos = {}
        for what, (episode_return, film) in self._kept.items():
            if what == 'best' or film is not self._kept['best'][1]:
                videos[what] = os.path.join(self._folder, f'{self._stem}-{what}-{episode_return:.6g}.{self._kind}')
                (mp4_to_gif if self._kind == 'gif' else os.replace)(film.path, videos[what])
        return videos

    def __enter__(self) -> Album:
        return self

    def __exit__(self, *exc: Any) -> None:
        for film in (*self._running.values(), *(film for _, film in self._kept.values())):
            film.discard()


def mp4_to_gif(source: str, target: str) -> None:
    """At most 25 frames a second and 480 pixels wide, with a palette of its own; frames are never all in memory."""
    import imageio_ffmpeg

    ffmpeg = [imageio_ffmpeg.get_ffmpeg_exe(), '-y', '-loglevel', 'error', '-i', source]
    scaled = f'fps={_GIF_FPS},scale=min({_GIF_WIDTH}\\,iw):-1:flags=lanczos'
    palette = f'{source}.png'
    try:
        for arguments in (
            ['-vf', f'{scaled},palettegen', palette],
            ['-i', palette, '-lavfi', f'{scaled}[frames];[frames][1:v]paletteuse', target],
        ):
            done = subprocess.run([*ffmpeg, *arguments], capture_output=True, text=True, check=False)
            if done.returncode:
                raise OSError(f'ffmpeg: {done.stderr.strip()}')
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(palette)


class NoScreenError(NervexError):
    """There is no screen to show a window on."""


class Window:
    """
    Overview:
        Shows pictures at the speed of the environment; closing the window interrupts the run as Ctrl-C does.
    Arguments:
        - fps (:obj:`float`): frames per second
    Interfaces:
        begin, frame, end, close
    """

    def __init__(self, fps: float) -> None:
        if not has_screen():
            raise NoScreenError(
                '--render: there is no screen here (neither DISPLAY nor WAYLAND_DISPLAY is set); --video writes a file'
            )
        try:
            import pygame
        except ImportError as e:
            raise ExtraMissingError("--render needs pygame: pip install 'nervex[video]'") from e
        self._pygame, self._fps = pygame, fps
        self._screen: Any = None  # as large as the first picture
        try:
            pygame.display.init()
        except pygame.error as e:
            raise NoScreenError(f'--render: the screen cannot be opened ({e}); --video writes a file') from e
        self._next = time.monotonic()

    def begin(self, key: int) -> None:
        """A new episode."""

    def frame(self, key: int, picture: np.ndarray) -> None:
        """Show a picture, when its time has come."""
        pygame = self._pygame
        if self._screen is None:
            self._screen = pygame.display.set_mode((picture.shape[1], picture.shape[0]))
            pygame.display.set_caption('nervex')
        self._screen.blit(pygame.surfarray.make_surface(picture.swapaxes(0, 1)), (0, 0))
        pygame.display.flip()
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            raise KeyboardInterrupt
        self._next = max(self._next + 1 / self._fps, time.monotonic())
        time.sleep(max(self._next - time.monotonic(), 0.0))

    def end(self, key: int, episode_return: float) -> None:
        """The episode is over."""

    def close(self) -> None:
        """Close the window; closing twice is fine."""
        self._pygame.display.quit()


def has_screen() -> bool:
    """Whether a window can be shown: a display server on Linux, or a driver of SDL that was asked for."""
    names = ('DISPLAY', 'WAYLAND_DISPLAY', 'SDL_VIDEODRIVER')
    return sys.platform != 'linux' or any(os.environ.get(name) for name in names)
