"""What all sides of ``parallel_bench.py`` share: settings, the 100-episode window, and the memory of a process tree."""

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from clock import _descendants, processor_seconds

RAY = dict(address='local', num_cpus=16, include_dashboard=False, object_store_memory=500_000_000, log_to_driver=False)


@dataclass(frozen=True)
class PPOSettings:
    """PPO on CartPole: 2 actors of 4 envs, one learner."""

    env_id: str = 'CartPole-v1'
    actors: int = 2
    envs_per_actor: int = 4
    rollout: int = 128
    minibatch: int = 128
    epochs: int = 10
    learning_rate: float = 1e-3
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    value_weight: float = 0.5
    grad_clip_norm: float = 0.5
    hidden: tuple[int, int] = (64, 64)
    target: float = 195.0
    limit_s: float = 80.0


@dataclass(frozen=True)
class IMPALASettings:
    """IMPALA on CartPole: 2 actors of 4 envs, one learner, measured over ``seconds`` after ``warm_up_s``."""

    env_id: str = 'CartPole-v1'
    actors: int = 2
    envs_per_actor: int = 4
    fragment: int = 50
    batch: int = 500
    learning_rate: float = 5e-4
    value_weight: float = 0.05
    grad_clip_norm: float = 40.0
    gamma: float = 0.99
    hidden: tuple[int, int] = (64, 64)
    warm_up_s: float = 4.0
    seconds: float = 15.0


PPO, IMPALA = PPOSettings(), IMPALASettings()
SLEEP_S, SLEEP_ACTORS, SLEEP_SECONDS = 0.002, (1, 4, 8), 6.0
FRAMES, FRAME_BLOCK, FRAME_SECONDS = (84, 84, 4), 200, 5.0
WEIGHTS_MB, WEIGHTS_ACTORS, WEIGHTS_REPEATS = 30, 4, 15


class Solved:
    """The window of the last 100 episodes, beside wall and processor time since it was made."""

    def __init__(self, target: float, limit_s: float) -> None:
        self._target, self._limit_s = target, limit_s
        self._window: deque = deque(maxlen=100)
        self._cpu, self._start = processor_seconds(), time.perf_counter()
        self.record: dict = {}

    def add(self, returns: Iterable[float], steps: int) -> bool:
        """Episodes that ended, and all steps until now; answers whether the job is over."""
        for value in returns:
            self._window.append(float(value))
            if len(self._window) == 100 and sum(self._window) / 100 >= self._target:
                self._end(steps, True)
                return True
        if time.perf_counter() - self._start > self._limit_s:
            self._end(steps, False)
        return bool(self.record)

    def _end(self, steps: int, solved: bool) -> None:
        wall, cpu = time.perf_counter() - self._start, processor_seconds() - self._cpu
        mean = sum(self._window) / max(1, len(self._window))
        self.record = dict(solved=solved, wall_s=wall, cpu_s=cpu, steps=steps, mean=mean, at=time.time(), **memory())


class Rate:
    """Counts what was done between ``start`` and ``stop``."""

    def __init__(self) -> None:
        self._cpu, self._start = processor_seconds(), time.perf_counter()

    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self._start

    def record(self, count: float) -> dict:
        """The figures."""
        wall, cpu = self.seconds(), processor_seconds() - self._cpu
        return dict(wall_s=wall, cpu_s=cpu, per_s=count / wall, per_cpu_s=count / cpu)


def memory() -> dict:
    """Processes and megabytes of this process and all below it: RSS counts shared pages once a process, PSS once."""
    import os

    rss = pss = count = 0
    for pid in [os.getpid(), *_descendants(os.getpid())]:
        try:
            lines = Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines()
        except OSError:
            continue
        sizes = {line.split(':')[0]: int(line.split()[1]) for line in lines[1:] if line.endswith('kB')}
        rss, pss, count = rss + sizes.get('Rss', 0), pss + sizes.get('Pss', 0), count + 1
    return dict(processes=count, rss_mb=rss / 1024, pss_mb=pss / 1024)
