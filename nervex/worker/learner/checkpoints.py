"""Checkpoints of one run: what is in them, where they are, how they are written, which of them are kept."""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Callable
from typing import Any

from nervex.utils import CheckpointError, NothingThereError
from nervex.utils.file_helper import read_file, remove_file, save_file

CHECKPOINT_VERSION = 1
BEST, LAST = 'ckpt_best.pth.tar', 'ckpt_last.pth.tar'


class Checkpoints:
    """
    Overview:
        The folder ``ckptBaseLearner<digits>`` of one run; the digits sort by start time and are never used twice.
    Arguments:
        - exp_path (:obj:`str`): the run's folder
        - keep (:obj:`int | None`): newest iteration files that are kept; None: all
        - keep_every (:obj:`int | None`): iterations whose multiples are kept whatever their age
        - say (:obj:`Callable`): is told of the path of every file that was written
    """

    def __init__(
        self, exp_path: str, keep: int | None, keep_every: int | None, say: Callable[[str], Any] = lambda path: None
    ) -> None:
        self._exp_path, self._keep, self._keep_every, self._say = exp_path, keep, keep_every, say
        self._folder: str | None = None
        self.last: str | None = None

    @property
    def folder(self) -> str:
        """The folder; made when it is first asked for."""
        while self._folder is None:
            path = os.path.join(self._exp_path, f'ckptBaseLearner{time.time_ns()}')
            try:
                os.makedirs(path)
            except FileExistsError:
                continue
            self._folder = path
        return self._folder

    @folder.setter
    def folder(self, path: str) -> None:
        """Go on in the folder of a run that is resumed."""
        os.makedirs(path, exist_ok=True)
        self._folder = path

    def save(self, iteration: int, state: Callable[[], dict], name: str | None = None) -> str:
        """
        Overview:
            Write a checkpoint, whole or not at all; answers the path.
        Arguments:
            - state (:obj:`Callable`): gives what is to be saved
            - name (:obj:`str | None`): file name; None gives ``iteration_<n>.pth.tar``, which is written once, and in
              place of an earlier end of the run, ``ckpt_last.pth.tar``
        """
        path = os.path.join(self.folder, name or f'iteration_{iteration}.pth.tar')
        if name is None and path == self.last:
            return path
        try:
            save_file(path, state())
        except OSError as e:
            raise CheckpointError(
                f'{path}: cannot be written ({e}); free space or permission is needed there. Last good checkpoint: '
                f'{self.last or "none"}'
            ) from e
        if name in (None, LAST):
            self.last = path
        if name is None:
            remove_file(os.path.join(self.folder, LAST))
            self._drop_old()
        self._say(path)
        return path

    def _drop_old(self) -> None:
        found = glob.glob(os.path.join(glob.escape(self.folder), 'iteration_*.pth.tar'))
        by_age = sorted((int(os.path.basename(path)[len('iteration_') : -len('.pth.tar')]), path) for path in found)
        for iteration, path in by_age[: -self._keep] if self._keep is not None else []:
            if not self._keep_every or iteration % self._keep_every:
                os.remove(path)


def load_checkpoint_file(path: str) -> dict[str, Any]:
    """
    Overview:
        Read a checkpoint, checking that it is one of ours and not newer than this version understands.
    """
    if not os.path.isfile(path):
        raise NothingThereError(f'{path}: no such checkpoint file')
    state = read_file(path)
    if not isinstance(state, dict) or 'model' not in state:
        raise CheckpointError(f"{path}: is not a nervex checkpoint: it has no key 'model'")
    if int(state.get('version', 0)) > CHECKPOINT_VERSION:
        raise CheckpointError(
            f'{path}: has checkpoint version {state["version"]}, this nervex reads up to '
            f'{CHECKPOINT_VERSION}; update nervex'
        )
    return state


# ---- what is in them
def state_of(learner: Any) -> dict[str, Any]:
    """The learn state of a learner's policy, of what is attached to it, and its counters."""
    return {
        **learner.policy.state_dict(),
        'attached': {name: part.state_dict() for name, part in learner.attached.items()},
        'config': learner.run_config,
        'last_iter': learner.train_iter,
        'envstep': learner.envstep,
        'version': CHECKPOINT_VERSION,
    }


def put_back(learner: Any, state: dict[str, Any], source: str) -> None:
    """Put a learner where ``state_of`` saw another one; what does not fit is an error that names the source."""
    try:
        learner.policy.load_state_dict(state)
    except (RuntimeError, KeyError) as e:
        raise CheckpointError(f'{source}: does not fit this policy and model: {e}') from e
    saved = state.get('attached', {})
    if set(saved) != set(learner.attached):
        raise CheckpointError(
            f'{source}: was saved with {", ".join(sorted(saved)) or "nothing"} beside the policy, this run has '
            f'{", ".join(sorted(learner.attached)) or "nothing"}; env.manager.norm_... and learner.learner_type must '
            'be the same'
        )
    for name, part in learner.attached.items():
        part.load_state_dict(saved[name])
    learner.train_iter, learner.envstep = int(state.get('last_iter', 0)), int(state.get('envstep', 0))
