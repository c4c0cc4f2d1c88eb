"""An env that writes down what it did, and the test that reads it: what an actor answers must agree with that."""

import os
from pathlib import Path

import numpy as np

from nervex.envs import BaseEnvTimestep
from nervex.envs.tests.fakes import FaultyEnv

LIFE = 100_000  # episodes of one life of an env count from a multiple of this


class LoggedEnv(FaultyEnv):
    """
    Overview:
        A FaultyEnv with a file of its own: a line for each life (it was made), each episode that ended well, and each
        fault. Its episodes have numbers that never come again, whatever happens to its process. With ``rate`` it goes
        wrong at random, in one of ``kinds``.
    """

    config = dict(
        log_path='',  # the file
        rate=0.0,  # probability of a fault in a step, and half as often in a reset
        kinds=(),  # of faults
    )

    def __init__(self, cfg=None):
        super().__init__(cfg)
        lives = sum(line.startswith('life') for line in read(self._cfg.log_path))
        self._write('life')
        self._chance = np.random.default_rng([self._cfg.tag, lives])
        self.episode, self._failed = LIFE * lives, None

    def reset(self, **kwargs):
        obs = super().reset(**kwargs)
        if self._cfg.rate and self._chance.random() < self._cfg.rate / 2:
            answer = self._go_wrong(self._kind('reset_'), BaseEnvTimestep(obs, np.zeros(1, np.float32), False, {}))
            return answer.obs if isinstance(answer, tuple) else answer
        return obs

    def step(self, action):
        timestep = super().step(action)
        if not isinstance(timestep, BaseEnvTimestep) or (self.episode, self.steps) == self._failed:
            return timestep
        if self._cfg.rate and self._chance.random() < self._cfg.rate:
            return self._go_wrong(self._kind(''), timestep)
        if timestep.done:
            self._write(f'end {self.episode} {self.steps}')
        return timestep

    def _kind(self, phase):
        kinds = [k for k in self._cfg.kinds if k.startswith('reset_') == bool(phase)]
        return kinds[self._chance.integers(len(kinds))].removeprefix('reset_')

    def _go_wrong(self, fault, timestep):
        self._failed = self.episode, self.steps
        self._write(f'fault {self.episode} {self.steps} {fault}')
        return super()._go_wrong(fault, timestep)

    def _write(self, line):
        with open(self._cfg.log_path, 'a', encoding='utf-8') as file:  # one write: whole or not at all
            file.write(line + '\n')


def read(path):
    """The lines so far."""
    return Path(path).read_text(encoding='utf-8').splitlines() if os.path.exists(path) else []


class Records:
    """
    Overview:
        What the envs of a run wrote. ``ended``: tag -> list of (episode, steps) in order; ``faults``: tag -> list of
        (episode, step, kind).
    """

    def __init__(self, paths):
        self.ended = {tag: [] for tag in range(len(paths))}
        self.faults = {tag: [] for tag in range(len(paths))}
        for tag, path in enumerate(paths):
            for line in read(path):
                what, *rest = line.split()
                if what == 'end':
                    self.ended[tag].append((int(rest[0]), int(rest[1])))
                elif what == 'fault':
                    self.faults[tag].append((int(rest[0]), int(rest[1]), rest[2]))

    @property
    def fault_count(self):
        return sum(len(faults) for faults in self.faults.values())
