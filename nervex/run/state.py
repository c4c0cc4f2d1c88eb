"""The complete state of a serial run at the boundary between two rounds: what ``--resume`` continues from."""

from __future__ import annotations

import contextlib
import glob
import logging
import math
import os
import random
import re
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from nervex.run.folder import FAULTS
from nervex.utils import CheckpointError, NervexError
from nervex.utils.file_helper import check_archive, read_file, save_file
from nervex.utils.part_state import put_back, state_of
from nervex.utils.trust import UntrustedError, seal, unseal

if TYPE_CHECKING:
    from nervex.run.serial_run import SerialRun

logger = logging.getLogger(__name__)
STATE_VERSION = 4
#: the parts of a run, in the order in which they are put back
PARTS = ('learner', 'policy', 'buffer', 'actor', 'evaluator', 'commander')
KEPT = 2  # the newest state and the one before, in case the newest cannot be read
ABOUT_THE_RUN = ('config.yaml', 'run.yaml', FAULTS)


def changed_by_evaluating(run: SerialRun) -> dict[str, Any]:
    """The parts of the state that an evaluation may change, so that it can be taken back."""
    return {
        'policy': run.policy.run_state_dict(),
        'evaluator': run.evaluator.state_dict(),
        'random': random_state(),
        'log_sizes': log_sizes(run.folder.log),
    }


def save_state(run: SerialRun, instead: dict[str, Any] | None = None) -> str:
    """
    Overview:
        Write everything that the rest of the run depends on beside the checkpoints: only tensors, numbers, strings,
        lists and dicts. ``instead`` has parts as they were at an earlier moment.
    """
    state = {**complete_state(run), **(instead or {})}
    return write_state(run.learner.ckpt_path, run.learner.train_iter, run.actor.total_step, state)


def complete_state(run: SerialRun) -> dict[str, Any]:
    """Everything that the rest of the run depends on beside the checkpoints."""
    envs = run.actor.env
    return {
        'version': STATE_VERSION,
        'seed': run.seed,
        **{name: state_of(getattr(run, name)) for name in PARTS},
        'envs': envs.state_dict() if hasattr(type(envs), 'state_dict') else None,
        'random': random_state(),
        'log_sizes': log_sizes(run.folder.log),
        'seconds': run.seconds,
    }


def restore_state(run: SerialRun, state: dict[str, Any]) -> None:
    """Put a freshly built run where ``save_state`` saw another one."""
    for name in PARTS:
        put_back(run, name, state[name])
    if state['envs'] is not None:
        run.actor.env.load_state_dict(state['envs'])
    else:
        run.actor.forget_unfinished()
        logger.warning(
            'the envs cannot be saved: their unfinished episodes begin anew, so the run goes on, but not as '
            'it would have without the stop'
        )
    run.seconds_before = state['seconds']
    load_random_state(state['random'])


def check_envs(path: str, envs: dict[str, Any] | None, trust: bool) -> None:
    """Refuse the pickles among saved envs that this user has not signed; with ``trust``, sign them."""
    while envs and 'inner' in envs:
        envs = envs['inner']
    saved = envs['envs'] if envs else []
    for i, env in enumerate(saved):
        data = env.numpy().tobytes()
        if not data.startswith(b'['):  # else it is JSON
            try:
                saved[i] = torch.frombuffer(bytearray(seal(unseal(data, trust))), dtype=torch.uint8)
            except UntrustedError as e:
                raise UntrustedError(f'{path}: {e}') from None


# ---- files ----
def write_state(ckpt_path: str, train_iter: int, env_step: int, state: dict[str, Any]) -> str:
    """Write a state under the name that tells where the run stood, and drop all but the newest ``KEPT``."""
    path = os.path.join(ckpt_path, f'run_state_{train_iter}_{env_step}.pth.tar')
    try:
        save_file(path, state)
    except OSError as e:
        raise CheckpointError(f'{path}: cannot be written ({e}); free space or permission is needed there') from e
    for old in state_files(ckpt_path)[KEPT:]:
        os.remove(old)
    return path


def state_files(ckpt_path: str) -> list[str]:
    """The saved states, newest first."""
    found = glob.glob(os.path.join(glob.escape(ckpt_path), 'run_state_*.pth.tar'))
    return sorted(found, key=_place, reverse=True)


def _place(path: str) -> list[int]:
    """The updates and env steps after which a state was saved."""
    return [int(x) for x in re.findall(r'\d+', os.path.basename(path))]


def steps_saved(ckpt_path: str) -> int:
    """The env steps at the newest saved state; 0 if there is none."""
    return max((_place(path)[1] for path in state_files(ckpt_path)), default=0)


def newest_state(ckpt_path: str) -> tuple[str | None, dict[str, Any] | None]:
    """
    Overview:
        The newest state that can be read, and its file; (None, None) if there is none. A damaged one is passed over
        with a line in the log; one of another version is an error.
    """
    for path in state_files(ckpt_path):
        try:
            state = read_file(path)
        except (NervexError, OSError) as e:
            logger.warning('%s cannot be read (%s): the one before it is taken', path, e)
            continue
        if (version := state.get('version', 0)) != STATE_VERSION:
            newer = version > STATE_VERSION
            remedy = 'update nervex' if newer else 'start a new run from its checkpoint with --load'
            raise CheckpointError(
                f'{path}: written by {"a newer" if newer else "an older"} nervex (version {version} of the state, not '
                f'{STATE_VERSION}); {remedy}'
            )
        return path, state
    return None, None


def whole_states(ckpt_path: str) -> dict[int, str]:
    """The saved states that are not damaged, by the updates after which they were saved; of equal ones the newest."""
    found = {}
    for path in reversed(state_files(ckpt_path)):
        with contextlib.suppress(Exception):
            check_archive(path)
            found[_place(path)[0]] = path
    return found


class SaveSchedule:
    """
    Overview:
        When to save: every ``interval_s`` seconds (None: never), and less often where saving takes so long that it
        would cost more than the share ``max_cost`` of the run (None: whatever it costs).
    """

    def __init__(self, interval_s: float | None, max_cost: float | None) -> None:
        self._interval, self._max_cost = interval_s, max_cost
        self.enabled = interval_s is not None
        self.took(0.0)

    def due(self) -> bool:
        """Whether it is time."""
        return time.monotonic() >= self._next

    def took(self, seconds: float) -> None:
        """Told after a save that took so long: plan the next one."""
        wait = math.inf if self._interval is None else max(self._interval, seconds / (self._max_cost or math.inf))
        self._next = time.monotonic() + wait

    def put_off(self) -> None:
        """A save has been asked for elsewhere: it is not due again before that one has been told of."""
        self._next = math.inf


# ---- logs ----
def log_sizes(folder: str) -> dict[str, int]:
    """Bytes of every file of the logs, by path below the folder."""
    paths = (os.path.join(base, name) for base, _, names in os.walk(folder) for name in names)
    return {os.path.relpath(path, folder): os.path.getsize(path) for path in paths}


def cut_logs(folder: str, sizes: dict[str, int], kept: tuple[str, ...] = ABOUT_THE_RUN) -> None:
    """Take back what was logged after the state was saved, but in files ``kept``: the resumed run will go on there."""
    for name, size in log_sizes(folder).items():
        if name not in sizes and name not in kept:
            os.remove(os.path.join(folder, name))
        elif name not in kept and size > sizes[name]:
            os.truncate(os.path.join(folder, name), sizes[name])


# ---- chance ----
def random_state() -> dict[str, Any]:
    """State of the global generators of Python, NumPy and torch."""
    version, internal, gauss = random.getstate()
    kind, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    state = {
        'python': [version, list(internal), gauss],
        'numpy': [kind, torch.from_numpy(np.asarray(keys).astype(np.int64)), position, has_gauss, cached],
        'torch': torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        state['cuda'] = torch.cuda.get_rng_state_all()
    return state


def load_random_state(state: dict[str, Any]) -> None:
    """Put back what ``random_state`` gave."""
    version, internal, gauss = state['python']
    random.setstate((version, tuple(internal), gauss))
    kind, keys, position, has_gauss, cached = state['numpy']
    np.random.set_state((kind, keys.numpy().astype(np.uint32), position, has_gauss, cached))
    torch.set_rng_state(state['torch'])
    if 'cuda' in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state['cuda'])
