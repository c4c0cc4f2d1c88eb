"""ThreadEnvManager: envs in threads, answered as they get ready."""

from nervex.worker.actor.env_manager.async_env_manager import AsyncSubprocessEnvManager
from nervex.worker.actor.env_manager.thread_pool import ThreadPool


class ThreadEnvManager(AsyncSubprocessEnvManager):
    """
    Overview:
        As AsyncSubprocessEnvManager, with threads of this process: for envs that are clients of something outside and
        wait most of the time (StarCraft II, CARLA), or that cannot live in a subprocess. An env that hangs is given up
        and replaced; its thread ends when the env returns.
    """

    kind = 'thread'

    def _new_pool(self, slices: list[range]) -> ThreadPool:
        return ThreadPool(self._env_num, slices, self._setup)
