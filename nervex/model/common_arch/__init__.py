"""The older name of ``nervex.model.common``."""

from nervex.model.common import __all__, __dir__, __getattr__  # noqa: F401
