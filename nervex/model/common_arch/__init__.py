"""The older name of ``nervex.model.common``."""

from nervex.model.common import *  # noqa: F403
from nervex.model.common import __all__  # noqa: F401
