"""Parallel runs as tests begin them."""

from nervex.parallel.run import start_parallel
from nervex.run.launch import Passed, prepare_launch


def build_parallel(cfg, seed, passed=None, overrides=(), resume=None, carrier=None):
    """``start_parallel`` of what ``prepare_launch`` makes of the same arguments."""
    return start_parallel(prepare_launch(cfg, seed, passed or Passed(), overrides, resume), carrier)
