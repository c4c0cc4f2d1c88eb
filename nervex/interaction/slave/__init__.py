"""The end that does the work."""

from nervex.interaction.slave.ray_slave import launch_slave
from nervex.interaction.slave.slave import Slave

__all__ = ['Slave', 'launch_slave']
