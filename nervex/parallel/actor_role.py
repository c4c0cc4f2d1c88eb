"""The role that collects: envs, collect mode and actor of serial mode in a process of their own."""

from __future__ import annotations

import math
import os
from collections import deque
from typing import Any

from nervex.parallel.blocks import Header, pack_block
from nervex.parallel.role import Role, RoleSpec, own_env_setting
from nervex.parallel.scaling import Scaling
from nervex.parallel.weights import load
from nervex.run.build import build_env_managers
from nervex.utils import ACTOR_REGISTRY, COMM_ACTOR_REGISTRY


@COMM_ACTOR_REGISTRY.register('ray')
class ActorRole(Role):
    """
    Overview:
        ``collect`` takes the newest weights, collects, and answers a header and a block.
    """

    def __init__(self, spec: RoleSpec) -> None:
        super().__init__(spec)
        cfg, seed = self.cfg, spec.role_seed
        (manager,) = build_env_managers(cfg, own_env_setting(spec), seed, self.stack, roles=('actor',))
        self.scaling = Scaling(manager)
        policy = self.build_policy(manager.env_info(), ('collect',))
        if cfg.actor.n_sample is not None:
            cfg.actor.n_sample = math.ceil(cfg.actor.n_sample / spec.count)
        cfg.actor.collect_print_freq = 0  # the header tells more, and sooner
        self.actor = ACTOR_REGISTRY.get(cfg.actor.actor_type)(cfg.actor, spec.exp_path, None, seed, log_name=None)
        self.stack.callback(self.actor.close)
        self.actor.env, self.actor.policy = manager, policy.collect_mode
        self.actor.recent_returns, self.actor.recent_lengths = deque(), deque()  # since the last answer
        ahead = 1 + (self.actor.policy.get_attribute('traj_overlap') or 0)  # steps to the next observation
        self._lags = (ahead * manager.env_num, ahead)  # in rows: of envs in step, of envs one after the other
        self._seq = 0
        self._version = -1
        self._train_iter = 0
        self._task_id: str | None = None

    def collect(self, task: dict[str, Any], request: dict[str, Any], weights: dict | None) -> tuple[Header, dict]:
        """
        Overview:
            Collect once.
        Arguments:
            - task (:obj:`dict`): what the commander wants this actor to do; a new ``task_id`` begins a new log file
            - request (:obj:`dict`): ``version`` and ``train_iter`` of the weights, ``setting`` of the policy, and how
              much: ``rows`` or ``episodes``
            - weights (:obj:`dict | None`): None where the actor has this version
        """
        if task['task_id'] != self._task_id:
            self._begin_task(task)
        if weights is not None and request['version'] != self._version:
            load(self.actor.policy, self.scaling.adopt(weights))
            self._version, self._train_iter = request['version'], request['train_iter']
        if request['setting']:
            self.actor.policy.set_setting('collect', request['setting'])
        data, info = self.actor.generate_data(
            self._train_iter, n_episode=request.get('episodes'), n_sample=request.get('rows')
        )
        columns, rows, nbytes = pack_block(data, self._lags)
        header = Header(
            actor=self.spec.index,
            incarnation=self.spec.incarnation,
            seq=self._seq,
            task_id=task['task_id'],
            version=self._version,
            last_version=self._version,
            train_iter=self._train_iter,
            rows=rows,
            steps=info['step'],
            seconds=info['duration'],
            nbytes=nbytes,
            returns=list(self.actor.recent_returns),
            lengths=list(self.actor.recent_lengths),
            events=self.take_events(),
            statistics=self.scaling.news(),
        )
        self._seq += 1
        self.actor.recent_returns.clear()
        self.actor.recent_lengths.clear()
        return header, columns

    def _begin_task(self, task: dict[str, Any]) -> None:
        self._task_id = task['task_id']
        self.actor.log.rename(f'{self._task_id}_{os.getpid()}')
        self.actor.log.line(f'{self.spec.name}, started {self.spec.incarnation} times before: {task}')
