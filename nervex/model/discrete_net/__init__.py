"""Networks of action values."""

from nervex.model.discrete_net.discrete_net import *  # noqa: F403
from nervex.model.discrete_net.discrete_net import __all__  # noqa: F401
