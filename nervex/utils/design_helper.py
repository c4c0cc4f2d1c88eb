"""Patterns of classes."""

import threading
from typing import Any


class SingletonMetaclass(type):
    """Metaclass of classes that have one instance a process, made at the first call; a subclass has its own."""

    _lock = threading.RLock()

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        with SingletonMetaclass._lock:
            if '_instance' not in vars(cls):
                cls._instance: Any = super().__call__(*args, **kwargs)
            return cls._instance

    @property
    def instance(cls) -> Any:
        """The instance, made without arguments if there is none yet."""
        return cls()
