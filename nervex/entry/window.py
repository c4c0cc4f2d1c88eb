"""A window that shows episodes while they are played."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np

from nervex.utils import ExtraMissingError, NervexError


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
        surface: Any = pygame.surfarray.make_surface(picture.swapaxes(0, 1))
        self._screen.blit(surface, (0, 0))
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
