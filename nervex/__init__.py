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

__all__ = [
    '__AUTHOR_EMAIL__',
    '__AUTHOR__',
    '__DESCRIPTION__',
    '__TITLE__',
    '__VERSION__',
    '__version__',
    'enable_hpc_rl',
]
