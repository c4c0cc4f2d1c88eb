"""The kinds of env managers that a config may name: where the envs live, and how one waits for them."""

from nervex.utils.declare import settings
from nervex.worker.actor.env_manager.manager import EnvManager
from nervex.worker.actor.env_manager.processes import Processes
from nervex.worker.actor.env_manager.threads import Threads
from nervex.worker.actor.env_manager.vector import Vectorised


class BaseEnvManager(EnvManager):
    """
    Overview:
        Steps all envs in this process. It has no overhead to speak of, so it is the right kind while a step of an env
        takes less than about 50 us; it cannot interrupt an env that hangs.
    """


class SyncSubprocessEnvManager(EnvManager):
    """
    Overview:
        A subprocess holds ``envs_per_worker`` envs; a step returns when all have stepped. For envs whose steps take
        about the same time, more than some 50 us each. Observations, rewards, ends and actions lie in shared memory;
        only infos and errors travel by pipe. An env that raises, hangs or dies is restarted.

        ``hybrid=True`` is for cheap envs: this process steps its share, and as many children as there are further cores
        step the rest. An env in this process cannot be interrupted, and takes the run with it if it ends the process.
    """

    backend = Processes
    config = settings(max_retry=5)  # more than in-process: processes die for reasons that are not the env's


class AsyncSubprocessEnvManager(SyncSubprocessEnvManager):
    """
    Overview:
        ``advance`` sends actions and answers with whichever envs have finished: as soon as ``wait_num`` have, or after
        ``step_wait_timeout`` if one has. For envs whose steps take uneven time. Episodes begin anew in the background,
        and so do envs that failed; ``observe`` waits only if no env at all is ready.
    """

    together = False


SubprocessEnvManager = AsyncSubprocessEnvManager


class ThreadEnvManager(EnvManager):
    """
    Overview:
        As AsyncSubprocessEnvManager, with threads of this process: for envs that are clients of something outside and
        wait most of the time (StarCraft II, CARLA), or that cannot live in a subprocess. An env that hangs is given up
        and replaced; its thread ends when the env returns.
    """

    backend = Threads
    together = False
    config = dict(max_retry=5)


class VectorEnvManager(EnvManager):
    """
    Overview:
        Drives one vectorised env. The fastest kind where such an env exists (Atari: ALE's own). All ready envs step
        together; with engines that reset in the step after an end, that env is not ready for one step.

        ``env_fn`` is a class with ``create_vector_env(cfgs)`` (GymEnv has it), or a function that answers an engine as
        in ``nervex.envs.vector_engine``. The configs of all envs are equal, episodes always follow one another at once.
    """

    backend = Vectorised
