"""The learner: updates the policy with batches, runs hooks, and writes checkpoints."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from easydict import EasyDict

from nervex.data.names import missing_column
from nervex.loader.sections import complete
from nervex.policy.batched import name_of
from nervex.utils import LEARNER_REGISTRY
from nervex.utils.autolog import LoggedModel, TickTime, monitor_type
from nervex.utils.declare import setting, settings
from nervex.utils.import_helper import import_modules
from nervex.worker.learner.checkpoints import Checkpoints, load_checkpoint_file, put_back, state_of
from nervex.worker.learner.learner_hook import HOOKS, LearnerHook, add_learner_hook, build_learner_hook_by_cfg
from nervex.worker.learner.learner_log import LearnerLog

_OLDER = ('use_cuda', 'use_distributed', 'dataloader')  # of the documents' learner section: the policy's settings now
_REMEDY = '_process_transition must return it, and _get_train_sample keep it'


@LEARNER_REGISTRY.register('base')
class BaseLearner:
    """
    Overview:
        ``train(batch)`` is one update: preprocess, ``before_iter`` hooks, forward, ``after_iter`` hooks, of which one
        logs.
    Interfaces:
        train, call_hook, register_hook, attach, save_checkpoint, load_checkpoint, learn_info, priority_info, monitor,
        state_dict, close
    """

    config = settings(
        learner_type=setting('base', 'str | class', 'registered name of a learner'),
        load_path=setting('', 'str', "checkpoint to start from, '' for none"),
        import_names=setting(None, 'str | list of str | None', 'modules that register hook types'),
        keep_ckpt=setting(10, 'int >= 1 | None', 'newest iteration files that are kept, beside the best; None: all'),
        keep_ckpt_every=setting(None, 'int >= 1 | None', 'iterations whose multiples are kept whatever their age'),
        resume=dict(
            interval_s=setting(30.0, 'number >= 0 | None', 'seconds between two savings of the state; None: never'),
            max_cost=setting(0.02, 'number in (0, 1] | None', 'share of the run that saving may take; None: any'),
        ),
        log_window=setting(10, 'int >= 1', 'updates that a TensorBoard value is averaged over'),
        monitor=setting(None, 'callable | None', 'makes the LoggedModel behind the log, of a clock and log_window'),
        hook=setting(
            dict(
                load_ckpt=dict(name='load_ckpt', type='load_ckpt', priority=20, position='before_run', ext_args={}),
                log_show=dict(
                    name='log_show', type='log_show', priority=20, position='after_iter', ext_args=dict(freq=100)
                ),
                save_ckpt_after_run=dict(
                    name='save_ckpt_after_run', type='save_ckpt', priority=20, position='after_run', ext_args={}
                ),
            ),
            HOOKS,
            'name -> type, position, priority and ext_args of a hook; None leaves it out',
        ),
    )

    def __init__(self, cfg: dict | None = None, exp_name: str = '.') -> None:
        given = {key: value for key, value in (cfg or {}).items() if key not in _OLDER}
        self.cfg = EasyDict(complete(type(self), given, 'learner', own_only=False))
        import_modules(self.cfg.import_names or [])
        self.log = LearnerLog(f'{exp_name}/log/learner')
        self.tb_logger = self.log.tb
        self._hooks = build_learner_hook_by_cfg(self.cfg.hook)
        self._policy: Any = None
        self._checkpoints = Checkpoints(exp_name, self.cfg.keep_ckpt, self.cfg.keep_ckpt_every, self._saved)
        self.attached: dict[str, Any] = {}
        self.run_config: dict[str, Any] | None = None  # in plain values, for whoever opens a checkpoint
        self.train_iter = self.envstep = 0
        self._done = False  # the hooks after the run began
        self.priority_info: dict[str, Any] | None = None
        self.train_seconds = 0.0

    # ---- parts ----
    @property
    def policy(self) -> Any:
        """The learn mode."""
        return self._policy

    @policy.setter
    def policy(self, learn_mode: Any) -> None:
        """Set it, and remember what it wants to be monitored."""
        self._policy = learn_mode
        make = self.cfg.monitor or monitor_type(learn_mode.monitor_vars())
        self.monitor = make(TickTime(), self.cfg.log_window)

    @property
    def monitor(self) -> LoggedModel:
        """
        Overview:
            The window of logged values, with a variable for each name in ``monitor_vars()``. Another LoggedModel over a
            TickTime may be assigned when the policy is set, or made by ``learner.monitor`` of the config: then all
            statistics that it registers are logged.
        """
        return self.log.monitor

    @monitor.setter
    def monitor(self, monitor: LoggedModel) -> None:
        """Log by another one."""
        self.log.monitor = monitor

    def attach(self, name: str, part: Any) -> None:
        """Something beside the policy whose ``state_dict`` belongs into every checkpoint, and comes back with it."""
        self.attached[name] = part

    @property
    def last_iter(self) -> int:
        """The number of updates done; an older name of ``train_iter``."""
        return self.train_iter

    @property
    def learn_info(self) -> dict[str, Any]:
        """What the commander is told."""
        steps = {'learner_step': self.train_iter, 'train_iter': self.train_iter}
        return {**steps, 'priority_info': self.priority_info, 'learner_done': self._done}

    # ---- training ----
    def train(self, data: Any, envstep: int = 0) -> dict[str, Any]:
        """
        Overview:
            One update.
        Arguments:
            - data (:obj:`Batch | list[dict]`): samples, as the buffer gives them
            - envstep (:obj:`int`): env steps collected so far, the second axis of the curves
        Returns:
            - log_vars (:obj:`dict[str, Any]`): what the policy answered; tensors stay tensors
        """
        start = time.perf_counter()
        self.envstep = envstep
        batch = self._policy.data_preprocess(data)
        if self._hooks['before_iter']:
            self.call_hook('before_iter')
        try:
            log_vars = self._policy.forward(batch)
        except KeyError as error:
            raise missing_column(error, batch, name_of(self._policy.forward), _REMEDY) from error
        priority = log_vars.pop('priority', None)
        self.priority_info = None if priority is None else self._priority_info(data, priority)
        self.log.last = log_vars
        self.log.fresh.append(log_vars)
        self.train_iter += 1
        if self.priority_info is not None and not np.isfinite(self.priority_info['priority']).all():
            self.log.check_finite(self)  # the buffer would refuse them, and blame the priorities
        self.call_hook('after_iter')
        self.train_seconds += time.perf_counter() - start
        return log_vars

    def _priority_info(self, data: Any, priority: Any) -> dict[str, Any] | None:
        """Priorities with the buffer's own keys of the rows they belong to; None if the rows carry no such keys."""
        if len(priority) != len(data):
            raise ValueError(
                f'priority: _forward_learn returned {len(priority)} values for a batch of {len(data)} rows; '
                'it must be one value a row'
            )
        keys, in_rows = ('replay_unique_id', 'replay_buffer_idx'), isinstance(data, list)
        if keys[0] not in (data[0] if in_rows else data):
            return None
        info = {key: [row[key] for row in data] if in_rows else data[key] for key in keys}
        values = priority.detach().cpu().numpy() if isinstance(priority, torch.Tensor) else np.asarray(priority)
        return {**info, 'priority': values}

    def begin(self) -> None:
        """Hooks before the run; the policy that was not trained yet becomes ``iteration_0.pth.tar``."""
        self.call_hook('before_run')
        if self.train_iter == 0:
            self.save_checkpoint()

    def start(self, batches: Any) -> None:
        """Train on an iterable of batches between the ``before_run`` and ``after_run`` hooks."""
        self.begin()
        for batch in batches:
            self.train(batch)
        self.call_hook('after_run')

    # ---- hooks ----
    def call_hook(self, position: str) -> None:
        """Run the hooks of a position that are due."""
        self._done = position == 'after_run'
        for hook in self._hooks[position]:
            if position in ('before_run', 'after_run') or self.train_iter % hook.freq == 0:
                hook(self)

    def register_hook(self, hook: LearnerHook) -> None:
        """Add a hook to this learner."""
        add_learner_hook(self._hooks, hook)

    # ---- log ----
    def write_log(self) -> None:
        """Text: values of the last update. TensorBoard: window means, against updates and env steps."""
        self.log.write(self)

    def check_weights(self) -> None:
        """Stop at a log value or weight that is NaN or infinite (a mask may be minus infinity): none is ever saved."""
        self.log.check_weights(self)

    # ---- checkpoints ----
    @property
    def ckpt_path(self) -> str:
        """This learner's own checkpoint folder."""
        return self._checkpoints.folder

    @ckpt_path.setter
    def ckpt_path(self, path: str) -> None:
        """Save into this folder from now on."""
        self._checkpoints.folder = path

    @property
    def last_checkpoint(self) -> str | None:
        """The newest ``iteration_<n>.pth.tar``, or ``ckpt_last.pth.tar``; None before the first."""
        return self._checkpoints.last

    def save_checkpoint(self, name: str | None = None) -> str:
        """
        Overview:
            Write the policy's learn state and the counters, whole or not at all; answers the path.
        Arguments:
            - name (:obj:`str | None`): file name; None gives ``iteration_<n>.pth.tar``
        """
        self.check_weights()  # so that the last checkpoint is always a good one
        return self._checkpoints.save(self.train_iter, self.state_dict, name)

    def _saved(self, path: str) -> None:
        self.log.text.info(f'checkpoint {path} saved')
        if self.tb_logger.listener is not None:
            self.tb_logger.listener.checkpoint(path)

    def save_state(self, state: dict[str, Any], name: str | None = None) -> str:
        """Write what ``state_dict`` gave earlier, as ``save_checkpoint`` would have done then."""
        return self._checkpoints.save(state['last_iter'], lambda: state, name)

    def load_checkpoint(self, path: str) -> None:
        """Load what ``save_checkpoint`` wrote; the iteration goes on from there."""
        self.load_state_dict(load_checkpoint_file(path), path)
        self.log.text.info(f'checkpoint {path} loaded, iteration {self.train_iter}')

    def state_dict(self) -> dict[str, Any]:
        """The policy's learn state (``model``, ``optimizer``, ...) and ``config``, ``last_iter``, ``envstep``, ..."""
        return state_of(self)

    def load_state_dict(self, state: dict[str, Any], source: str = 'state dict') -> None:
        """Put back what ``state_dict`` gave; ``source`` is what an error names."""
        put_back(self, state, source)

    def run_state_dict(self) -> dict[str, Any]:
        """
        Overview:
            Everything that an exact resume needs beside the workers: the learn state, counters and the log's window. Of
            a run that has diverged it is an error, so that its last good state stays.
        """
        self.check_weights()
        own = {'last_checkpoint': self.last_checkpoint, 'train_seconds': self.train_seconds}
        return {**self.state_dict(), 'monitor': self.monitor.state_dict(), **own}

    def load_run_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``run_state_dict`` gave."""
        self.load_state_dict(state)
        self.monitor.load_state_dict(state['monitor'])
        self._checkpoints.last, self.train_seconds = state['last_checkpoint'], state['train_seconds']

    def close(self) -> None:
        """Close the log files; closing twice is fine."""
        self.log.close()


def create_learner(cfg: dict, **kwargs: Any) -> BaseLearner:
    """Import ``cfg['import_names']``, then build the learner registered as ``cfg['learner_type']``, or the base one."""
    import_modules(cfg.get('import_names') or [])
    return LEARNER_REGISTRY.get(cfg.get('learner_type') or 'base')(cfg, **kwargs)
