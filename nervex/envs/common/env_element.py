"""Description of one element of an env (observation, action or reward), and the parts that produce one."""

from abc import ABC, abstractmethod
from collections import namedtuple
from typing import Any

EnvElementInfo = namedtuple(
    'EnvElementInfo', ['shape', 'value', 'to_agent_processor', 'from_agent_processor'], defaults=[None, None]
)
EnvElementInfo.__doc__ = """
Overview:
    What an element looks like. ``shape`` is a tuple (a dict of tuples for dict observations); a discrete action has the
    shape ``(n_actions, )``. ``value`` holds ``min``, ``max``, ``dtype``, ``kind`` (``'discrete' | 'multi_discrete' |
    'continuous'``) and, for the discrete kinds, ``n`` (an int, or the tuple of sizes).
"""


class EnvElement(ABC):
    """
    Overview:
        One element of a structured env, e.g. the unit list of a strategy game, with a fixed description.
    Interfaces:
        info
    """

    @property
    @abstractmethod
    def info(self) -> EnvElementInfo:
        """The description of this element."""

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.info})'


class EnvElementRunner(ABC):
    """
    Overview:
        Reads (or writes) one element of a running env; a structured env is a few runners.
    Interfaces:
        get, reset, info
    """

    def __init__(self, core: EnvElement) -> None:
        self._core = core

    @property
    def info(self) -> EnvElementInfo:
        """The description of the element that this runner handles."""
        return self._core.info

    @abstractmethod
    def get(self, engine: Any) -> Any:
        """The element's present value, read from the env's engine."""

    def reset(self) -> None:  # noqa: B027 (most runners keep nothing)
        """Forget what was kept from the last episode."""
