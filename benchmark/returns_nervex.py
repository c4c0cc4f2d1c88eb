"""nervex: the functions that policies call, with and without ``enable_hpc_rl``, and the bare kernels under them."""

from collections.abc import Callable

import numpy as np
from returns_jobs import GAMMA, LAMBDA, NSTEP, Rollout, cases

import nervex
from nervex.rl_utils import gae, gae_data, rollout_nstep_data, rollout_nstep_return, vtrace_targets, vtrace_targets_data


def _gae(rollout: Rollout) -> Callable[[], object]:
    value, reward, done = rollout.tensors('value', 'reward', 'done')
    return lambda: gae(gae_data(value, reward, done), GAMMA, LAMBDA)


def _nstep(rollout: Rollout) -> Callable[[], object]:
    value, reward, done = rollout.tensors('value', 'reward', 'done')
    return lambda: rollout_nstep_return(rollout_nstep_data(value, reward, done), GAMMA, NSTEP)


def _vtrace(rollout: Rollout) -> Callable[[], object]:
    value, reward, done, log_pi, log_mu = rollout.tensors('value', 'reward', 'done', 'log_pi', 'log_mu')
    return lambda: vtrace_targets(vtrace_targets_data(log_pi - log_mu, value, reward, done), GAMMA, 1.0)


def _first(answer: object, rollout: Rollout) -> object:
    return answer[0] if isinstance(answer, tuple) else answer


def plain() -> dict:
    """Torch and NumPy only."""
    nervex.enable_hpc_rl = False
    return cases({'gae': _gae, 'nstep5': _nstep, 'vtrace': _vtrace}, _first)


def hpc() -> dict:
    """With numba."""
    nervex.enable_hpc_rl = True
    return cases({'gae': _gae, 'nstep5': _nstep, 'vtrace': _vtrace}, _first)


def kernels() -> dict:
    """The compiled functions on NumPy arrays, into memory that is there already."""
    from nervex.hpc_rl import kernels as compiled

    def run_gae(rollout: Rollout) -> Callable[[], object]:
        out, fields = np.empty_like(rollout.reward), (rollout.value, rollout.reward, rollout.done, None, None)
        return lambda: (compiled.gae(*fields, GAMMA, GAMMA * LAMBDA, out), out)[1]

    def run_nstep(rollout: Rollout) -> Callable[[], object]:
        out, fields = np.empty_like(rollout.reward), (rollout.value, rollout.reward, rollout.done, None, None)
        return lambda: (compiled.rollout_nstep(*fields, GAMMA, NSTEP, out), out)[1]

    def run_vtrace(rollout: Rollout) -> Callable[[], object]:
        target, adv = np.empty_like(rollout.reward), np.empty_like(rollout.reward)
        fields = (rollout.value, rollout.reward, rollout.done, None, None)

        def run() -> object:
            rho = np.exp(rollout.log_pi - rollout.log_mu)
            compiled.vtrace(*fields, rho, GAMMA, GAMMA, 1.0, 1.0, 1.0, adv, target)
            return target

        return run

    return cases({'gae': run_gae, 'nstep5': run_nstep, 'vtrace': run_vtrace})
