"""Handing tasks from a master to its slaves, which are threads of this process or Ray actors."""

from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.interaction.exception': (
        'ConnectionRefuse DisconnectionRefuse InteractionError MasterErrorCode SlaveErrorCode TaskFail TaskRefuse'
    ),
    'nervex.interaction.master': 'Connection Master Task TaskStatus',
    'nervex.interaction.slave': 'Slave launch_slave',
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, _HOMES)
