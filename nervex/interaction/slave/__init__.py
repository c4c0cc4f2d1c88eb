"""The end that does the work."""

from nervex.interaction.slave.host import Host, launch_slave
from nervex.interaction.slave.slave import Slave

__all__ = ['Host', 'Slave', 'launch_slave']
