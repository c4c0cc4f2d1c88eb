"""Patterns of classes."""

import threading
from typing import Any


class SingletonMetaclass(type):
    """
    Overview:
        Metaclass of classes that have one instance a process, made at the first call; a subclass has its own.
    """

    def __init__(cls, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cls._instance: Any = None
        cls._lock = threading.Lock()

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        with cls._lock:
            if cls._instance is None:
                cls._instance = super().__call__(*args, **kwargs)
            return cls._instance

    @property
    def instance(cls) -> Any:
        """The instance, made without arguments if there is none yet."""
        return cls()
