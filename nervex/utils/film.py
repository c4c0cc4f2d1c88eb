"""Writing a video frame by frame."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import numpy as np

from nervex.utils.errors import ExtraMissingError

_BLOCK = 16  # codecs want sides that are multiples of it


class Film:
    """
    Overview:
        An mp4 file; no frames are kept in memory, however long it gets. Its folder is made if it is missing.
    Arguments:
        - path (:obj:`str`): the file
        - fps (:obj:`float`): frames per second
    Interfaces:
        add, close, discard
    """

    def __init__(self, path: str, fps: float) -> None:
        self.path = path
        imageio = encoder()
        os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
        self._writer = imageio.get_writer(
            path, format='FFMPEG', fps=fps, macro_block_size=1, output_params=['-preset', 'veryfast']
        )

    def add(self, picture: np.ndarray) -> None:
        """The next frame: uint8, height x width x 3."""
        self._writer.append_data(padded(picture))

    def close(self) -> None:
        """The film is complete."""
        self._writer.close()

    def discard(self) -> None:
        """Close and remove it."""
        with contextlib.suppress(OSError):  # the encoder died: its file goes all the same
            self._writer.close()
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.path)


def padded(picture: np.ndarray) -> np.ndarray:
    """The picture with its last row and column repeated until both sides are multiples of 16."""
    height, width = picture.shape[:2]
    return np.pad(picture, ((0, -height % _BLOCK), (0, -width % _BLOCK), (0, 0)), mode='edge')


def encoder() -> Any:
    """The package that encodes, or an error that says how to install it."""
    try:
        import imageio.v2
        import imageio_ffmpeg  # noqa: F401  the encoder itself
    except ImportError as e:
        raise ExtraMissingError(f"a video needs imageio with ffmpeg: pip install 'nervex[video]' ({e})") from e
    return imageio.v2
