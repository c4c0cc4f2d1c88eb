"""What both ends share: how calls go to a slave, and how their answers come back."""

from nervex.interaction.base.carrier import Answers, Carrier, Handle, Ref
from nervex.interaction.base.futures import Futures, RayHandle, open_handle, translated

__all__ = ['Answers', 'Carrier', 'Futures', 'Handle', 'RayHandle', 'Ref', 'open_handle', 'translated']
