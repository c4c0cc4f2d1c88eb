"""What is to run, known before any file or process exists: the beginning and the way that all modes share."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from easydict import EasyDict

from nervex.config import compile_config, read_config
from nervex.config.save import nameless, plain_config
from nervex.policy import Policy
from nervex.run.events import Events, RunStart
from nervex.run.folder import (
    PLAYERS,
    FolderInUseError,
    RunFolder,
    SavedRun,
    checkpoint_file,
    config_beside,
    free_folders,
    names_in,
    saved_run,
    tidy_folder,
)
from nervex.run.progress import harmless
from nervex.run.result import RunResult
from nervex.run.state import ABOUT_THE_RUN, check_envs, cut_logs, newest_state
from nervex.utils import CheckpointError, ConfigError, NervexError
from nervex.utils.class_config import merge_config
from nervex.utils.file_helper import remove_unfinished

logger = logging.getLogger(__name__)
EnvSetting = tuple[Callable[..., Any], list[dict], list[dict]]


@dataclass(frozen=True)
class Passed:
    """What a caller passes beside the config, in place of what it names."""

    env_setting: EnvSetting | None = None
    policy: type[Policy] | None = None
    model: Any = None  # a class, or the module itself
    data: Any = None  # the recorded episodes of offline mode
    rivals: Any = None  # the opponents of a learner of a league


@dataclass(frozen=True)
class Launch:
    """
    Overview:
        What is to run; ``prepare_launch`` makes it.
    Arguments:
        - cfg (:obj:`EasyDict`): resolved; ``exp_name`` of a run that goes on is its folder
        - saved (:obj:`SavedRun | None`): the earlier run that this one goes on from; None: a new one
        - trust (:obj:`bool`): open what another user has pickled in it
    """

    cfg: EasyDict
    seed: int
    passed: Passed
    saved: SavedRun | None
    trust: bool = False

    def carry_out(
        self, start: Callable[[Launch], Any], loop: Callable[[Any], None], progress: bool | None, total_log: bool
    ) -> RunResult:
        """
        Overview:
            The whole run. One whose folder holds it already, to the same end, changes nothing.
        Arguments:
            - start (:obj:`Callable`): builds the run, a context manager that closes what it built
            - loop (:obj:`Callable`): collects and learns until the run is over; Ctrl-C saves
            - progress, total_log (:obj:`bool`): what a person sees; a ``progress`` of None: on a terminal
        """
        result = None if self.saved is None else self.saved.result(self.cfg)
        if result is not None:
            more = 'another evaluator.stop_val' if result.solved else 'a higher limit, -o commander.max_env_step=...'
            logger.warning(
                '%s: already %s; nothing is changed. It goes on with %s', result.exp_path, result.verdict, more
            )
            tidy_folder(result.exp_path)
            return result
        if progress is None:
            progress = sys.stdout is not None and sys.stdout.isatty()
        if progress:  # the first sign of life: what is built takes a while
            env, policy = self.names
            with harmless():
                print(f'building {policy} for {env} ...', flush=True)
        with start(self) as run:
            if progress and run.folder.path != '.':
                with harmless():
                    print(f'in {run.folder.path}; Ctrl-C saves and stops it', flush=True)
            run.show(progress, total_log)
            try:
                try:
                    run.begin()
                except NervexError:  # such as a checkpoint of another model
                    run.folder.withdraw()
                    raise
                loop(run)
            except KeyboardInterrupt:
                raise run.interrupted() from None
            return run.finish()

    @property
    def names(self) -> tuple[str, str]:
        """What people call the env and the policy."""
        env, policy = names_in(self.cfg)
        made = None if self.passed.env_setting is None else self.passed.env_setting[0]
        return getattr(made, '__name__', env), getattr(self.passed.policy, '__name__', policy)

    def newest_state(self) -> dict[str, Any] | None:
        """The complete state that the run goes on from; an earlier run that has none yet begins anew from its seed."""
        if self.saved is None:
            return None
        path, state = newest_state(self.saved.ckpt_path)
        if path is not None and state is not None:
            check_envs(path, state.get('envs'), self.trust)
        elif self.saved.finished:
            raise CheckpointError(
                f'{self.saved.folder}: is finished, and has no saved state to go on from (learner.resume.interval_s '
                'was null); start a new run from its checkpoint with --load'
            )
        else:
            logger.warning('%s: no saved state yet; the run begins anew from its seed', self.saved.ckpt_path)
        return state

    def open_folder(
        self, stack: contextlib.ExitStack, sizes: dict[str, int], kept: tuple[str, ...] = ABOUT_THE_RUN
    ) -> RunFolder:
        """
        Overview:
            The run's folder, owned until ``stack`` closes. Where a run goes on, what was written after its saved state
            is taken back; call it before the workers open their logs.
        Arguments:
            - sizes (:obj:`dict`): bytes of the logs at that state
            - kept (:obj:`tuple[str, ...]`): logs that stay whole
        """
        env, policy = self.names
        given: str = self.cfg.exp_name
        names: dict[str, Any] = {} if self.saved else dict(env=env, policy=policy, seed=self.seed)
        for path in free_folders(given, **names):
            try:
                folder = stack.enter_context(RunFolder(path or '.', self.saved is not None))
            except FolderInUseError:
                if path == given:
                    raise
            else:
                self.cfg.exp_name = path
                break
        folder.curve = f'{env} {policy}, seed {self.seed}', self.cfg.evaluator.stop_val
        folder.events = Events(self.cfg.events, folder.log)
        if self.saved is not None:
            remove_unfinished(self.saved.ckpt_path)
            cut_logs(folder.log, sizes, kept)
        return folder

    def describe(self, folder: RunFolder, ckpt_path: str, mode: str = 'serial') -> None:
        """
        Overview:
            Describe a new run, of a mode, in its folder; one that goes on is described there, but for new rates. The
            sinks of its events are told.
        """
        if self.saved is None:
            for path in nameless(self.cfg):
                logger.warning(
                    '%s: no other process can import what stands there, so this run cannot be resumed from its folder '
                    'alone, only with the same config beside (-c); write it as a class or function of a module',
                    path,
                )
            folder.describe({**self.cfg, 'seed': self.seed}, ckpt_path, mode)
        else:
            folder.goes_on()
        if self.saved is not None and self.saved.diverged:
            signed = folder.save_config({**self.saved.config, 'policy': self.cfg.policy})
            folder.note(signed=signed if self.saved.own else None)
        digits = re.sub(r'\D', '', os.path.basename(ckpt_path) + folder.read()['started'])
        name = f'{os.path.basename(os.path.abspath(folder.path))}-{digits[:19]}'
        config = plain_config({**self.cfg, 'seed': self.seed})
        try:
            folder.events.start(RunStart(folder.path, config, name, self.saved is not None))
        except NervexError:  # one of the sinks cannot begin
            folder.withdraw()
            raise


def prepare_launch(
    cfg: str | dict | None,
    seed: int | None,
    passed: Passed = Passed(),
    overrides: tuple[str, ...] = (),
    resume: str | None = None,
    load_path: str | None = None,
    collects: bool = True,
    trust: bool = False,
) -> Launch:
    """
    Overview:
        Check and resolve a config for any mode; all its errors are raised here.
    Arguments:
        - cfg (:obj:`str | dict | None`): path, built-in name or dict; None takes that of ``resume`` or ``load_path``
        - seed (:obj:`int | None`): None draws one; a run that goes on has its own
        - resume (:obj:`str | None`): folder of an earlier run
        - load_path (:obj:`str | None`): a checkpoint, or the folder of a run for its best one; None takes
          ``learner.load_path``, which is a file in the answer
        - trust (:obj:`bool`): ``resume`` opens what another user has pickled, which may run any code
        - collects (:obj:`bool`): False needs no size of collecting in the config
    """
    saved = None if resume is None else saved_run(resume)
    home, place = os.path.split(os.path.dirname(os.path.abspath(resume or '')))
    if resume is not None and place == PLAYERS and os.path.isdir(os.path.join(home, 'log')):
        raise ConfigError(f'{resume}: is a player of a league and goes on with the others: --resume {home}')
    if cfg is None:
        if saved is None and load_path is None:
            raise ConfigError('no config: give one, or a run that has one to resume or to load')
        cfg = saved.config_to_use(trust) if saved is not None else config_beside(load_path or '', trust)
    if not collects:
        cfg = without_collecting(cfg)
    resolved = compile_config(cfg, passed.policy, passed.env_setting, passed.model, overrides, needs_env=True)
    if saved is not None:
        saved.check_same(resolved)
        resolved.exp_name, seed = resume, saved.seed
    elif load_path or resolved.learner.load_path:
        resolved.learner.load_path = checkpoint_file(load_path or resolved.learner.load_path)
    if seed is None:
        seed = int.from_bytes(os.urandom(4), 'little') % 2**31
    return Launch(resolved, seed, passed, saved, trust)


def without_collecting(cfg: str | Mapping) -> dict:
    """The config with a size of collecting, which the actor's section must have although nothing is collected."""
    given = dict(read_config(cfg) if isinstance(cfg, (str, os.PathLike)) else cfg)
    actor = given.get('actor') or {}
    if isinstance(actor, Mapping) and actor.get('n_sample') is None and actor.get('n_episode') is None:
        given['actor'] = merge_config(actor, dict(n_sample=1))
    return given
