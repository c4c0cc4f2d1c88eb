"""The folder of a run: who may write in it, what the run was started with, how it ended, and its checkpoints."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hmac
import itertools
import logging
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import yaml
from easydict import EasyDict

from nervex.config.save import plain_config, save_config
from nervex.config.sections import by_default
from nervex.run.curve import draw_curve
from nervex.run.result import RunResult
from nervex.utils import CheckpointError, ConfigError, NervexError, NothingThereError, nearest, tree
from nervex.utils.file_helper import atomic_write, remove_unfinished
from nervex.utils.trust import UntrustedError, signature

logger = logging.getLogger(__name__)
_LOCK = '.nervex_lock'
FAULTS = 'faults_logger.txt'  # in the log: the warnings of a run, its failures, and when it was gone on with
PLAYERS = 'players'  # folder of the runs of a league's players, in that of the league
AUTO = 'runs/{env}_{policy}_s{seed}'  # the exp_name of runs that are to have a folder each
_PACKAGES = ('nervex', 'torch', 'numpy', 'gymnasium', 'easydict')

_STOPS = ('evaluator.stop_val', 'evaluator.stop_win_rate')
# what may differ between a run and its continuation: when it ends and what is shown, not what is computed
_MAY_DIFFER = (
    *('exp_name', 'seed', 'events', *_STOPS, 'parallel'),
    *('learner.resume', 'learner.hook', 'learner.load_path'),
)
# but not these of the commander
_OPPONENTS = tuple(f'commander.{name}' for name in ('selfplay', 'snapshot', 'opponent', 'league', 'turn'))
# and what may be changed to go on from before weights or losses became NaN or infinite
_AGAINST_DIVERGENCE = ('policy.learn.learning_rate', 'policy.learn.grad_clip_norm')


class FolderInUseError(NervexError, OSError):
    """Another run that is going on writes into this folder."""


class RunFolder:
    """
    Overview:
        One run at a time owns a folder. A new run in a folder that already holds one moves the older ``log`` to
        ``log_1``, ``log_2``, ...; checkpoint folders carry digits of their own and are never shared. What goes wrong
        meanwhile is put into ``log/faults_logger.txt``.
    Arguments:
        - path (:obj:`str`): the folder; made if it is not there
        - resume (:obj:`bool`): go on in the logs that are there
    Interfaces:
        describe, goes_on, save_config, count_resumes, ended, note, withdraw, read, close; a context manager that
        notes how the run ended
    """

    def __init__(self, path: str, resume: bool = False) -> None:
        self.path = path
        self.log = os.path.join(path, 'log')
        self._end: dict[str, Any] = {}
        self._described = False  # a run goes on here, and is told of
        self.events: Any = None  # who is told of the run
        self.curve: tuple[str, float | None] = '', None  # title and stop_val of its picture
        self._is_new, self._withdrawn = not os.path.exists(path), False
        os.makedirs(path, exist_ok=True)
        self._lock = own_folder(path)
        for written in (self.log, os.path.join(self.log, 'evaluator')):
            remove_unfinished(written)
        if not resume and os.path.exists(os.path.join(self.log, 'config.yaml')):  # a log of ours
            set_aside(self.log)
        from nervex.utils.log_helper import FaultFile  # which loads torch; who only looks at runs does without

        self._faults = FaultFile(os.path.join(self.log, FAULTS))

    def describe(self, cfg: dict[str, Any], ckpt_path: str, mode: str = 'serial') -> None:
        """
        Overview:
            Write ``log/config.yaml``, with the seed, and ``log/run.yaml``: the command, the versions of packages, the
            commit of the current folder, and the mode.
        """
        signed = self.save_config(cfg)
        self._described = True
        self.note(
            state='running',
            command=[os.path.basename(sys.argv[0]), *sys.argv[1:]],
            mode=mode,
            seed=cfg['seed'],
            started=time.strftime('%Y-%m-%dT%H:%M:%S%z'),
            checkpoints=os.path.relpath(ckpt_path, self.path),
            python=platform.python_version(),
            packages=dict(_versions()),
            git_commit=_git_commit(),
            finished=None,
            signed=signed,
        )

    def goes_on(self) -> None:
        """Note that the run that was described earlier is going on again."""
        self._described = True
        before = self.read().get('state', 'interrupted')
        if before != 'finished':
            was = {'running': 'killed'}.get(before, before)
            self._faults.say(logging.WARNING, f'the run was {was}; it goes on from its newest saved state')
        self.note(state='running', error=None)

    def save_config(self, cfg: dict[str, Any]) -> str | None:
        """Write ``log/config.yaml``; answers this user's signature, if it needs one and there is a place for a key."""
        path = os.path.join(self.log, 'config.yaml')
        save_config(cfg, path)
        with contextlib.suppress(OSError):
            return _signature(path) if reaching_out(read_yaml(path)) else None
        return None

    def count_resumes(self, resumed: bool) -> int:
        """How often this run was resumed, with this time, from which on it is not finished any more."""
        if resumed:
            self.note(resumed=self.read().get('resumed', 0) + 1, finished=None, result=None, diverged=None)
        return self.read().get('resumed', 0)

    def ended(self, result: RunResult) -> None:
        """How the run ended, with its counters; it is noted when all logs are closed, with the folder."""
        how = 'solved' if result.solved else 'limit reached'
        self._end = {'state': 'finished', 'finished': how, 'result': result.counters()}

    def note(self, **facts: Any) -> None:
        """
        Overview:
            Put facts into ``log/run.yaml``. After ``diverged``, the reason why training was stopped, the next resume
            may change what ``_AGAINST_DIVERGENCE`` names.
        """
        facts = {**self.read(), **facts}
        with atomic_write(os.path.join(self.log, 'run.yaml'), 'w') as f:
            yaml.safe_dump(facts, f, sort_keys=False)

    def withdraw(self) -> None:
        """The run could not begin: a folder that was made for it goes when it is closed."""
        self._withdrawn = True

    def read(self) -> dict[str, Any]:
        """The facts in ``log/run.yaml``; none yet in a new folder."""
        path = os.path.join(self.log, 'run.yaml')
        return read_yaml(path) if os.path.exists(path) else {}

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, kind: Any = None, error: BaseException | None = None, trace: Any = None) -> None:
        if error is not None:
            self._end = {'state': 'interrupted'}
            if not isinstance(error, (KeyboardInterrupt, GeneratorExit)):
                text = ' '.join(f'{type(error).__name__}: {error}'.split())
                self._end = {'state': 'failed', 'error': text[:2000]}
                if self._described:
                    self._faults.say(logging.ERROR, text[:2000])
        with contextlib.suppress(OSError) if error is not None else contextlib.nullcontext():
            self.close()  # a disk that is full, too, does not hide why the run ended

    def close(self) -> None:
        """Draw the curve, note how the run ended, and leave the folder to others; closing twice is fine."""
        if not self._lock.closed:
            end = self._end or {'state': 'interrupted'}
            try:
                if self._described or self._end:
                    try:
                        draw_curve(os.path.join(self.log, 'evaluator', 'curve.csv'), *self.curve)
                    except OSError as e:  # the run has its result all the same
                        logger.warning('the curve is not drawn: %s', e)
                if self.events is not None:
                    self.events.end(end['state'], end.get('result') or {k: v for k, v in end.items() if k != 'state'})
                    if self.events.failed and self._described:
                        with contextlib.suppress(OSError):
                            self.note(events_failed=self.events.failed)
                if self._described or self._end:
                    self.note(**end)  # last, so that a run which is killed before has its end told when it is resumed
            finally:  # a full disk leaves the folder to others, too
                self._faults.close()
                leave_folder(self.path, self._lock)
                if self._withdrawn and self._is_new:
                    shutil.rmtree(self.path, ignore_errors=True)


def own_folder(folder: str) -> Any:
    """The lock of a folder, to be given back by ``leave_folder``; FolderInUseError while another process has it."""
    path = os.path.join(folder, _LOCK)
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o666)  # not what a link leads to
    lock = open(number, 'a+', encoding='utf-8')  # noqa: SIM115  closed by close()
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as e:
        lock.seek(0)
        owner = lock.read().strip() or 'unknown'
        lock.close()
        raise FolderInUseError(
            f'{os.path.abspath(folder)}: another run (process {owner}) is writing here; set exp_name to a '
            'folder of its own for this run'
        ) from e
    if not (os.path.exists(path) and os.path.samestat(os.stat(path), os.fstat(lock.fileno()))):
        lock.close()  # its owner was just leaving and took the file away: own a file that others see
        return own_folder(folder)
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def leave_folder(folder: str, lock: Any) -> None:
    """Leave a folder to others."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(folder, _LOCK))
    lock.close()


def tidy_folder(folder: str) -> None:
    """Take away the lock of a process that was killed as it left the folder."""
    if os.path.exists(os.path.join(folder, _LOCK)):
        with contextlib.suppress(OSError, FolderInUseError):
            leave_folder(folder, own_folder(folder))


def free_folders(exp_name: str, holds: str = os.path.join('log', 'run.yaml'), **names: Any) -> Iterator[str]:
    """
    Overview:
        Where a new run may write: ``exp_name`` with its blanks ``{env}``, ``{policy}`` and ``{seed}`` filled in, then
        ``_2``, ``_3``, ... behind it, but for those that hold a run. Without a blank it is one place, taken or not.
    Arguments:
        - holds (:obj:`str`): the file by which a folder is taken
    """
    filled = exp_name
    for blank, value in names.items():
        filled = filled.replace(f'{{{blank}}}', re.sub(r'[^\w.-]+', '-', str(value)).strip('-'))
    if filled == exp_name:
        yield exp_name
        return
    for path in itertools.chain([filled], (f'{filled}_{n}' for n in itertools.count(2))):
        if not os.path.exists(os.path.join(path, holds)):
            yield path


def names_in(config: Mapping[str, Any]) -> tuple[str, str]:
    """What people call the env and the policy of a config."""
    env, policy = config['env'], config['policy'].get('policy_type')
    kinds = (env.get('env_id') or env.get('env_fn') or env.get('env_type') or 'own env', policy or 'own policy')
    env_name, policy_name = (  # a lambda has no name: that of its kind
        kind.rpartition(':')[2] if isinstance(kind, str) else getattr(kind, '__name__', type(kind).__name__).strip('<>')
        for kind in kinds
    )
    return env_name, policy_name


def set_aside(path: str) -> None:
    """Rename a folder of an earlier run, to make room: ``log`` becomes ``log_1``, ``log_2``, ..."""
    os.rename(path, next(free for n in itertools.count(1) if not os.path.exists(free := f'{path}_{n}')))


def _versions() -> Iterator[tuple[str, str]]:
    for name in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            yield name, metadata.version(name)


def _git_commit() -> str | None:
    """The commit of the repository that the current folder is in; None outside of one, or without git."""
    with contextlib.suppress(FileNotFoundError, subprocess.TimeoutExpired):
        command = ['git', 'rev-parse', 'HEAD']
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=False).stdout.strip() or None
    return None


@dataclass(frozen=True)
class SavedRun:
    """A stopped or finished run, as its folder describes it."""

    folder: str
    config: dict[str, Any]
    seed: int
    ckpt_path: str
    finished: str | None  # 'solved', 'limit reached', or None: it was stopped
    counters: dict[str, Any] | None  # of its ``RunResult``, if it is finished
    diverged: str | None = None  # the message, if training was stopped by it
    own: bool = False  # this user has signed its config
    state: str = 'interrupted'  # running, finished, interrupted, failed or killed
    mode: str = 'serial'  # or offline or parallel

    def config_to_use(self, trust: bool) -> dict[str, Any]:
        """Its config, to be run. One that reaches out of its folder needs this user's signature, or ``trust``."""
        if named := reaching_out(self.config):
            if not (self.own or trust):
                raise UntrustedError(
                    f'{self.folder}: its config names code to run, or folders to write in ({", ".join(named)}), and '
                    'you have not signed it (another user, machine or version made it); give one of yours with -c, '
                    'or --trust if you trust who made the run'
                )
            sys.path.append(os.getcwd())
        return self.config

    @property
    def checkpoint(self) -> str:
        """The best checkpoint, or else the newest."""
        found = glob.glob(os.path.join(glob.escape(self.ckpt_path), '[ci]*.pth.tar'))  # but no run_state_...
        best = os.path.join(self.ckpt_path, 'ckpt_best.pth.tar')
        if not found and (players := sorted(glob.glob(os.path.join(glob.escape(self.folder), PLAYERS, '*')))):
            raise NothingThereError(f'{self.folder}: holds a league; give one of its players: {", ".join(players)}')
        if not found:
            raise NothingThereError(f'{self.ckpt_path}: holds no checkpoint yet')
        return best if best in found else max(found, key=os.path.getmtime)

    def check_same(self, resolved: dict[str, Any]) -> None:
        """A run is only continued with the settings that it was started with; names all that differ."""
        problems = [
            f'{path}: is {new!r}, but the run in {self.folder} was started with {old!r}; resume with '
            'the same settings, or start a new run with --load'
            for path, new, old in self._changes(resolved)
            if not any(path == p or path.startswith(p + '.') for p in _MAY_DIFFER)
            and not (path.startswith('commander.') and not path.startswith(_OPPONENTS))
            and not (self.diverged and path.startswith(_AGAINST_DIVERGENCE))
            and not (isinstance(old, str) and ':' in old and '<' in old)  # a function without a name is given again
        ]
        if problems:
            raise ConfigError(problems)

    def result(self, resolved: EasyDict) -> RunResult | None:
        """How it ended, if a continuation with this config would end there, too; None: there is more to do."""
        if self.finished is None or self.counters is None:
            return None
        limits = _STOPS if self.counters['solved'] else (*_STOPS, 'commander.')
        if any(path.startswith(limits) for path, _, _ in self._changes(resolved)):
            return None
        return RunResult(
            **self.counters, seed=self.seed, exp_path=self.folder, ckpt_path=self.ckpt_path, config=resolved
        )

    def _changes(self, resolved: dict[str, Any]) -> list[tuple[str, Any, Any]]:
        """Paths of the settings that differ, with the value here and the one of the saved run."""
        new, old = leaves(plain_config(resolved)), leaves(self.config)
        changed = [(p, new.get(p), old.get(p)) for p in sorted(set(new) | set(old)) if new.get(p) != old.get(p)]
        if all(path in old for path, _, _ in changed):
            return changed
        later = by_default(resolved)  # of a newer nervex, which the run did not know
        return [change for change in changed if change[0] in old or change[0] not in later]


def saved_run(folder: str, log: str = 'log') -> SavedRun:
    """Read the description that a run left in ``folder``; a folder without a run is an error that says so."""
    paths = [os.path.join(folder, log, name) for name in ('config.yaml', 'run.yaml')]
    for path in paths:
        if not os.path.isfile(path):
            raise NothingThereError(
                f'{folder}: holds no run to resume or load: {path} is missing; give the folder that was the '
                "run's exp_name (or its current folder)"
            )
    config, facts = map(read_yaml, paths)
    try:
        ckpt_path, seed = os.path.join(folder, facts['checkpoints']), int(facts['seed'])
    except (KeyError, TypeError, ValueError) as e:
        raise CheckpointError(f'{paths[1]}: is no description of a run ({type(e).__name__}: {e})') from e
    check_inside(folder, os.path.join(folder, log), ckpt_path)
    signed = facts.get('signed')
    own = isinstance(signed, str) and signed.isascii() and hmac.compare_digest(signed, _signature(paths[0]))
    how = (facts.get('finished'), facts.get('result'), facts.get('diverged'))
    state = facts.get('state') or ('finished' if how[0] else 'interrupted')  # earlier versions told only the end
    state = 'killed' if state == 'running' and not _is_owned(folder) else state
    return SavedRun(folder, config, seed, ckpt_path, *how, own, state, facts.get('mode') or 'serial')


def state_of_run(folder: str, log: str = 'log') -> str:
    """How the run in a folder is: its ``state``, or 'damaged'; '' where none has begun."""
    if not os.path.isfile(os.path.join(folder, log, 'run.yaml')):
        return ''
    try:
        return saved_run(folder, log).state
    except CheckpointError:
        return 'damaged'


def _is_owned(folder: str) -> bool:
    """Whether a run that is going on writes there; one of another machine may not be seen."""
    try:
        with open(os.path.join(folder, _LOCK), encoding='utf-8') as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def find_runs(path: str) -> list[str]:
    """The folders of runs in or below a folder; the players of a league count as one run."""
    found = []
    for folder, below, _ in os.walk(path):
        if os.path.isfile(os.path.join(folder, 'log', 'run.yaml')):
            found.append(folder)
            below.clear()
        below.sort()
    return found


def run_at(path: str) -> SavedRun:
    """
    Overview:
        The run whose folder, or one of whose checkpoints, ``path`` is. Where it is neither, NothingThereError says what
        is there.
    """
    is_folder = os.path.isdir(path)
    if is_folder and os.path.isfile(os.path.join(path, 'log', 'run.yaml')):
        return saved_run(path)
    folder = os.path.relpath(os.path.dirname(os.path.dirname(os.path.abspath(path))))
    for log in [] if is_folder else sorted(glob.glob('log*', root_dir=folder)):
        with contextlib.suppress(CheckpointError, FileNotFoundError):
            run = saved_run(folder, log)
            if os.path.realpath(run.ckpt_path) == os.path.realpath(os.path.dirname(path)):
                return run
    below = find_runs(path) if is_folder else []
    if below:
        raise NothingThereError(f'{path}: holds {len(below)} runs; give one of them: {", ".join(below)}')
    home, name = os.path.split(os.path.normpath(path))
    near = (
        None if os.path.exists(path) else nearest(name, os.listdir(home or '.') if os.path.isdir(home or '.') else ())
    )
    hint = f"; did you mean '{os.path.join(home, near)}'?" if near else ' (with -m, -c gives one)'
    raise NothingThereError(f'{path}: is no folder of a run and lies in none, which would have a config{hint}')


def reaching_out(config: dict[str, Any]) -> list[str]:
    """
    Overview:
        The settings by which a config reaches out of the folder of its run: they name modules that are not nerveX's,
        or anything as 'module:name', or a folder to write in.
    """

    def reaches(path: str, text: str) -> bool:
        if path.endswith('import_names'):
            return text.partition('.')[0] not in ('nervex', 'app_zoo')
        if path == 'exp_name' or path.startswith('parallel.k8s.'):  # is not used; names of images look like code
            return False
        leads_out = (
            os.path.isabs(text) or '..' in text.split('/') or path.endswith(('replay_path', 'log_path', 'collect_traj'))
        )
        return bool(text) and (leads_out or re.match(r'[\w.]+:[^\W\d]', text) is not None)

    return [
        path
        for path, value in leaves(config).items()
        if any(reaches(path, str(text)) for text in tree.leaves(value) if text is not None)
    ]


def _signature(path: str) -> str:
    with open(path, 'rb') as f:
        return signature(f.read()).hex()


def check_inside(folder: str, *places: str) -> None:
    """
    Overview:
        Nothing in the folder of a run leads out of it: a run that goes on cuts, removes and writes there, and whoever
        made the folder does not decide about other files. CheckpointError names what does.
    Arguments:
        - places (:obj:`str`): folders in it, with all that is below
    """
    home = os.path.realpath(folder)
    for place in places:
        below = (os.path.join(base, name) for base, dirs, files in os.walk(place) for name in dirs + files)
        for path in itertools.chain([place], filter(os.path.islink, below)):
            if os.path.commonpath([home, os.path.realpath(path)]) != home:
                raise CheckpointError(f'{path}: leads out of the folder of its run, {folder}; put what it means there')


def checkpoint_file(path: str) -> str:
    """``path``, or the best checkpoint of the run whose folder it is."""
    return saved_run(path).checkpoint if os.path.isdir(path) else path


def config_beside(path: str, trust: bool = False) -> dict[str, Any]:
    """The config of the run whose folder, or checkpoint, ``path`` is; to be used in another folder."""
    return {key: value for key, value in run_at(path).config_to_use(trust).items() if key not in ('exp_name', 'seed')}


def read_yaml(path: str) -> dict[str, Any]:
    """The settings, or facts, in a file that a run wrote; CheckpointError if it is damaged."""
    try:
        with open(path, encoding='utf-8') as f:
            values = yaml.safe_load(f)
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        raise CheckpointError(f'{path}: is damaged: {" ".join(str(e).split())}') from e
    if not isinstance(values, dict):
        raise CheckpointError(f'{path}: is damaged: holds {type(values).__name__}, not settings by name')
    return values


def leaves(config: dict[str, Any], path: str = '') -> dict[str, Any]:
    """The settings of a saved config by their full path."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        below = f'{path}{key}'
        if isinstance(value, dict):
            flat.update(leaves(value, f'{below}.'))
        else:
            flat[below] = value
    return flat
