"""What both ends share: the way to a slave, where answers come in, and a beginning and an end."""

from nervex.interaction.base.answers import Answers, Carrier, Handle
from nervex.interaction.base.handles import LocalHandle, RayHandle, open_handle
from nervex.interaction.base.life import Life

__all__ = ['Answers', 'Carrier', 'Handle', 'Life', 'LocalHandle', 'RayHandle', 'open_handle']
