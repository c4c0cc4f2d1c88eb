"""How the processes of envs are started."""

import contextlib
import multiprocessing
import signal
import sys
import threading
import warnings
from collections.abc import Iterator

from nervex.envs.hosting.worker import STOPS


def safe_context() -> str:
    """fork, which is fast, unless this process has threads or a GPU, which a fork does not survive; then forkserver."""
    methods = multiprocessing.get_all_start_methods()
    torch = sys.modules.get('torch')
    if 'fork' not in methods:
        return 'spawn'
    if threading.active_count() > 1 or (torch is not None and torch.cuda.is_initialized()) or sys.platform == 'darwin':
        return 'forkserver'
    return 'fork'


@contextlib.contextmanager
def starting() -> Iterator[None]:
    """Around the start of a process. Python 3.12 warns of forks where threads exist; see ``safe_context``."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # Python may lose what arrives while it forks
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', DeprecationWarning)
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
