"""Parallel runs as tests begin them."""

from nervex.parallel.run import ParallelRun
from nervex.run.launch import Passed, prepare_launch


def build_parallel(cfg, seed, passed=None, overrides=(), resume=None, carrier=None):
    """A run of what ``prepare_launch`` makes of the same arguments."""
    return ParallelRun(prepare_launch(cfg, seed, passed or Passed(), overrides, resume), carrier)
