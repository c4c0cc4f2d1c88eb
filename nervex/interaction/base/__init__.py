"""What both ends share: the line between them, a clockwork, threads as Ray has them."""

from nervex.interaction.base.line import Line, ThreadLine, open_line
from nervex.interaction.base.periodic import Periodic

__all__ = ['Line', 'Periodic', 'ThreadLine', 'open_line']
