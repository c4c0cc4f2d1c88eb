"""nerveX: deep-RL agents from one config. Sub-packages are imported where they are used."""

from nervex.version import (
    __AUTHOR__,
    __AUTHOR_EMAIL__,
    __DESCRIPTION__,
    __TITLE__,
    __VERSION__,
    __version__,
)

#: Replace the recursions of nervex.rl_utils by the compiled versions of nervex.hpc_rl where these are installed.
enable_hpc_rl = False

TYPE_CHECKING = False  # the module typing takes longer to import than all that is here
if TYPE_CHECKING:
    from nervex.entry.agent import Agent


def __getattr__(name: str) -> object:
    if name == 'Agent':
        from nervex.entry.agent import Agent

        return Agent
    raise AttributeError(f'module nervex has no attribute {name!r}')


__all__ = [
    '__AUTHOR_EMAIL__',
    '__AUTHOR__',
    '__DESCRIPTION__',
    '__TITLE__',
    '__VERSION__',
    'Agent',
    '__version__',
    'enable_hpc_rl',
]
