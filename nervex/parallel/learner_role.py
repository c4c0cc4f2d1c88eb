"""The role that learns: learn mode, learner and the buffers of serial mode; several of them are as one."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from nervex.config.save import plain_config
from nervex.interaction.exception import SlaveDied
from nervex.parallel.blocks import Header, Ledger, pack_weights, unpack_block
from nervex.parallel.pace import largest, role_seed
from nervex.parallel.role import SCALING, Role, RoleSpec
from nervex.run.build import build_buffer, env_info
from nervex.run.events import Relay
from nervex.run.opponents import snapshot_of
from nervex.run.state import (
    STATE_VERSION,
    load_random_state,
    log_sizes,
    newest_state,
    random_state,
    whole_states,
    write_state,
)
from nervex.utils import COMM_LEARNER_REGISTRY, LEARNER_REGISTRY, ConfigError, tree
from nervex.utils.default_helper import set_pkg_seed
from nervex.utils.dist_helper import allreduce, dist_finalize, dist_init
from nervex.utils.file_helper import read_file, save_file
from nervex.worker.actor.env_manager import normalizer_for
from nervex.worker.learner.checkpoints import load_checkpoint_file

logger = logging.getLogger(__name__)
_MEET_S = 120.0  # in which the others must come, and answer
_PUT_BYTES_PER_S = 1.5e9  # what it costs to hand out weights, about
_PUT_SHARE = 0.1  # of the learner's time that may go into it


class LearnerGroup:
    """
    Overview:
        One learner of ``spec.count``. The first one writes the logs and checkpoints of the run, the others keep theirs
        below. Alone it agrees with itself.
    """

    def __init__(self, spec: RoleSpec, stack: contextlib.ExitStack) -> None:
        self.count, self.rank = spec.count, spec.index
        first = self.rank == 0
        self.log_path = spec.exp_path if first else os.path.join(spec.exp_path, 'log', spec.name)
        self.ckpt_path = learner_folder(spec.ckpt_path, self.rank)
        if self.count > 1:
            place = os.path.join(os.path.abspath(spec.ckpt_path), f'.meet_{spec.incarnation}')
            backend = 'nccl' if spec.cfg.policy.use_cuda and torch.cuda.is_available() else 'gloo'
            with self.watched():
                dist_init(backend, self.rank, self.count, f'file://{place}', timeout_s=_MEET_S)
            stack.callback(dist_finalize)
            if first:
                stack.callback(Path(place).unlink, missing_ok=True)

    def agree(self, count: int) -> int:
        """The smallest of what all learners say."""
        if self.count == 1:
            return count
        device = 'cuda' if torch.distributed.get_backend() == 'nccl' else 'cpu'
        return int(allreduce(torch.tensor(count, device=device), 'min'))

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Where one of the others dies, this one is as good as dead: the group begins anew together."""
        try:
            yield
        except RuntimeError as e:
            if self.count > 1 and any(word in str(e) for word in ('onnection', 'gloo', 'NCCL', 'imeout', 'imed out')):
                raise SlaveDied(f'another learner is gone: {str(e).splitlines()[0][:120]}') from e
            raise


def learner_folder(ckpt_path: str, index: int) -> str:
    """Where a learner keeps its checkpoints and states: the first one in the run's folder, the others below it."""
    return os.path.join(ckpt_path, f'learner{index}') if index else ckpt_path


def common_state(ckpt_path: str, rank: int, learners: int) -> tuple[str | None, dict[str, Any] | None]:
    """The newest saved state that all learners have, as this one saved it; (None, None) if there is none."""
    if learners == 1:
        return newest_state(ckpt_path)
    states = [whole_states(learner_folder(ckpt_path, k)) for k in range(learners)]
    common = set(states[0]).intersection(*states[1:])
    path = states[rank][max(common)] if common else None
    return path, None if path is None else read_file(path)


def sizes_of_saved_logs(ckpt_path: str, learners: int) -> dict[str, int]:
    """
    Overview:
        Bytes that each file of the logs had when the state was saved that ``learners`` learners will go on from; empty
        if there is none, so that they begin anew. A state of another number of learners is an error.
    """
    _, state = newest_state(ckpt_path)
    wrote = learners if state is None else state.get('learners', 1)
    if wrote != learners:
        raise ConfigError(
            f'parallel.learner_num: is {learners}, but the state of the run in {os.path.dirname(ckpt_path)} was saved '
            f'by {wrote}, each with its part of the data; resume with parallel.learner_num={wrote}'
        )
    if learners > 1:
        _, state = common_state(ckpt_path, 0, learners)
    return {} if state is None else state['log_sizes']


@COMM_LEARNER_REGISTRY.register('ray')
class LearnerRole(Role):
    """
    Overview:
        ``learn`` takes blocks, does the updates that are due, and answers what happened and the newest weights.
    Interfaces:
        begin, ping, learn, publish, begin_anew, snapshot, keep, finish, close
    """

    def __init__(self, spec: RoleSpec) -> None:
        super().__init__(spec)
        cfg = self.cfg
        self.group = LearnerGroup(spec, self.stack)
        set_pkg_seed(role_seed(spec.seed, 'learner', 0, 0))  # all learners begin with the same weights
        info = env_info(cfg, spec.passed.env_setting)
        self.policy = self.build_policy(info, ('learn', 'collect'))
        set_pkg_seed(spec.role_seed)
        self._envstep = 0
        if not self.group.rank:
            log = os.path.join(spec.exp_path, 'log')
            self.relay = Relay(cfg.events, log, lambda: (self._envstep, self.learner.train_iter))
            self.stack.callback(self.relay.close)
        self.learner = LEARNER_REGISTRY.get(cfg.learner.learner_type)(cfg.learner, exp_name=self.group.log_path)
        self.stack.callback(self.learner.close)
        self.learner.ckpt_path = self.group.ckpt_path
        self.learner.policy = self.policy.learn_mode
        self.learner.run_config = plain_config({**cfg, 'policy': self.policy._cfg})
        self.scaling = normalizer_for(cfg.env.env_manager_type, cfg.env.manager)  # joins what all actors saw
        if self.scaling is not None:
            self.learner.attach(SCALING, self.scaling)
        self.buffer = build_buffer(cfg, spec.exp_path, spec.role_seed, info, self.stack)
        self.ledger = Ledger()
        self.notes: dict[str, Any] | None = None  # of the coordinator, in the state that this role goes on from
        self._published, self._publish_at = -1, 0.0
        self._snapshots: dict[int, dict] = {}
        self._inserted = self._sampled = 0
        self._restored = spec.resume_iter is not None and self._restore()

    def begin(self) -> dict[str, Any]:
        """Hooks before the run; a role that goes on had them."""
        if not self._restored:
            self.learner.begin()
        return self.counters()

    def progress(self) -> float:
        """Updates, and the work between them."""
        return self.learner.train_iter + super().progress()

    def counters(self) -> dict[str, Any]:
        """Where this learner stands."""
        about = {'notes': self.notes, 'last_checkpoint': self.learner.last_checkpoint}
        return {**self._counts(), **about, **super().begin()}

    def _counts(self) -> dict[str, int]:
        held = {'inserted': self._inserted, 'sampled': self._sampled, 'count': self.buffer.count()}
        return {'train_iter': self.learner.train_iter, **held}

    # ---- learning ----
    def learn(self, headers: list[Header], request: dict[str, Any], *blocks: dict) -> tuple[dict, dict | None]:
        """
        Overview:
            Insert blocks, then learn.
        Arguments:
            - request (:obj:`dict`): ``updates`` (None: one round of the serial loop), ``envstep``, ``setting`` of the
              policy, and ``notes`` of the coordinator if the state is to be saved
        Returns:
            - info (:obj:`dict`): counters, and what this call did
            - weights (:obj:`dict | None`): the newest ones, unless they were handed out a moment ago
        """
        info: dict[str, Any] = {'refused': 0, 'stale': 0, 'staleness': []}
        for header, block in zip(headers, blocks):
            self._insert(header, block, info)
        del blocks
        if request['setting']:
            self.learner.policy.set_setting('learn', request['setting'])
        before, self._envstep = self.learner.train_iter, request['envstep']
        start = time.perf_counter()
        with self.group.watched():
            for batch in self._batches(request['updates']):
                self.learner.train(batch, request['envstep'])
                self._sampled += sum(map(len, batch.values())) if isinstance(batch, dict) else len(batch)
                if self.learner.priority_info is not None and self.cfg.policy.use_priority:
                    self.buffer.update(self.learner.priority_info)
        info.update(self._counts())
        info.update(updates=self.learner.train_iter - before, learn_seconds=time.perf_counter() - start)
        info['saved'] = None if request['notes'] is None else self.save(request['notes'])
        weights = self._new_weights(request['updates'] is None or request['publish'])
        info['published'] = weights is not None
        return info, weights

    def _insert(self, header: Header, block: dict, info: dict[str, Any]) -> None:
        staleness = self.learner.train_iter - header.train_iter
        limit = self.cfg.parallel.max_staleness
        if not self.ledger.take(*header.key):
            info['refused'] += 1
            return
        if self.scaling is not None and header.statistics is not None:
            self.scaling.learn(header.statistics)
        if limit is not None and staleness > limit:
            info['stale'] += header.rows
        elif header.rows:
            info['staleness'].append(staleness)
            self.buffer.push_data(unpack_block(block))
            self._inserted += header.rows

    def _batches(self, updates: int | None) -> Any:
        group, train_iter, size = self.group, self.learner.train_iter, self.policy._get_batch_size()
        rows = largest(size) or 1
        if updates is None:
            batches = self.policy.batches(self.buffer, train_iter)
            if group.count == 1:
                return batches
            learn = self.cfg.policy.learn
            epochs = learn.epochs if 'epochs' in learn else None
            a_round = learn.train_step if epochs is None else epochs * math.ceil(self.buffer.count() / rows)
            return islice(batches, group.agree(a_round))
        if updates and group.count > 1:  # all or none: an update waits for the others
            updates = group.agree(updates if self.buffer.count() >= rows else 0)
        return self.buffer.batches(size, updates, train_iter) if updates else ()

    def _new_weights(self, always: bool = False) -> dict | None:
        """The weights, if there are new ones and handing them out does not take too much of the time."""
        parallel, now = self.cfg.parallel, time.monotonic()
        fresh = self.learner.train_iter - self._published
        due = fresh >= max(parallel.publish_iters, 1) and now >= self._publish_at
        if self.group.rank or not (always or due):  # the first learner speaks for all
            return None
        self._published = self.learner.train_iter
        weights = self._weights()
        self._publish_at = now + tree.nbytes(weights) / _PUT_BYTES_PER_S / _PUT_SHARE
        return weights

    def _weights(self) -> dict[str, Any]:
        """Those that actors need, with the statistics of the scaling that they were trained with."""
        weights = pack_weights(self.policy.collect_mode.state_dict())
        return weights if self.scaling is None else {**weights, SCALING: self.scaling.state_dict()}

    # ---- of a league ----
    def publish(self, path: str, first: str | None) -> dict[str, Any]:
        """
        Overview:
            Write a checkpoint to be played against.
        Arguments:
            - path (:obj:`str`): where; ``{}`` in it stands for the number of updates
            - first (:obj:`str | None`): where the complete one is to be kept that is begun anew from
        """
        self.learner.check_weights()
        if first is not None:
            save_file(first, self.learner.state_dict())
        save_file(path.replace('{}', str(self.learner.train_iter)), snapshot_of(self.learner))
        return {'train_iter': self.learner.train_iter}

    def begin_anew(self, path: str, notes: dict[str, Any]) -> dict[str, Any]:
        """Go on with the weights of this checkpoint; done when the state is saved that has them."""
        self.learner.policy.load_state_dict(load_checkpoint_file(path))
        return self.save(notes)

    # ---- checkpoints ----
    def snapshot(self) -> tuple[dict[str, Any], dict]:
        """Remember the learner as it is now, for ``keep``; answers the counters and the weights."""
        train_iter = self.learner.train_iter
        self._snapshots = dict(list(self._snapshots.items())[-3:])
        copied = tree.map(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, self.learner.state_dict())
        self._snapshots[train_iter] = copied
        return {'train_iter': train_iter}, self._weights()

    def keep(self, train_iter: int) -> dict[str, Any]:
        """Write the learner as it was after so many updates as checkpoint: it was the best so far."""
        state = self._snapshots.pop(train_iter, None)
        if state is None:
            logger.warning('the best learner so far was not saved: the process that remembered it has ended')
        else:
            self.learner.save_state(state)
            self.learner.save_state(state, 'ckpt_best.pth.tar')
        return {'last_checkpoint': self.learner.last_checkpoint}

    def finish(self, notes: dict[str, Any]) -> dict[str, Any]:
        """Save the complete state; hooks after the run, which save the last checkpoint."""
        self.save(notes)
        self.learner.call_hook('after_run')
        counters = self.counters()
        self.close()
        return counters

    def save(self, notes: dict[str, Any]) -> dict[str, Any]:
        """Write the complete state, with what the coordinator knows, whose sizes of this role's logs are older."""
        start, mine = time.perf_counter(), (os.path.join('learner', ''), os.path.join('buffer', ''))
        sizes = log_sizes(os.path.join(self.spec.exp_path, 'log'))
        state = {
            'version': STATE_VERSION,
            'mode': 'parallel',
            'learners': self.group.count,
            'seed': self.spec.seed,
            'random': random_state(),
            'learner': self.learner.run_state_dict(),
            'policy': self.policy.run_state_dict(),
            'buffer': self.buffer.state_dict(),
            'ledger': self.ledger.state_dict(),
            'rows': [self._inserted, self._sampled],
            'coordinator': notes,
            'log_sizes': {
                **notes['log_sizes'],
                **{name: size for name, size in sizes.items() if name.startswith(mine)},
            },
            'seconds': notes['seconds'],
        }
        write_state(self.learner.ckpt_path, self.learner.train_iter, self.learner.envstep, state)
        return {'train_iter': self.learner.train_iter, 'seconds': time.perf_counter() - start}

    def _restore(self) -> bool:
        path, state = common_state(self.spec.ckpt_path, self.group.rank, self.group.count)
        if state is None:
            logger.warning('there is no saved state yet: the learner begins anew')
            return False
        self.learner.load_run_state_dict(state['learner'])
        self.policy.load_run_state_dict(state['policy'])
        self.buffer.load_state_dict(state['buffer'])
        if state.get('mode') == 'parallel':
            self.ledger.load_state_dict(state['ledger'])
            self._inserted, self._sampled = state['rows']
            self.notes = state['coordinator']
        else:
            actor = state['actor']
            self._inserted = self.buffer.count()
            self.notes = {  # what the coordinator wants to know, out of the state of a serial run
                'total_step': actor['total_step'],
                'total_episode': actor['total_episode'],
                'returns': actor['recent_returns'],
                'evaluator': state['evaluator'],
                'commander': state['commander'],
                'seconds': state['seconds'],
            }
        load_random_state(state['random'])
        logger.info('%s: the learner goes on at update %d', path, self.learner.train_iter)
        return True
