"""What every role is told, and how its process is made ready."""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass, field
from typing import Any

import torch
from easydict import EasyDict

from nervex.parallel.pace import role_seed
from nervex.policy import Policy
from nervex.run.build import EnvSetting, Passed, build_policy, policy_class
from nervex.utils import tree
from nervex.utils.default_helper import set_pkg_seed
from nervex.utils.import_helper import import_modules


@dataclass(frozen=True)
class RoleSpec:
    """One role of a run; it is sent to the role's process."""

    kind: str  # 'actor', 'evaluator' or 'learner'
    index: int
    incarnation: int  # how often the role was started before
    count: int  # roles of this kind
    cfg: EasyDict
    seed: int  # of the run
    exp_path: str
    envs: int  # of one actor
    passed: Passed = field(default_factory=Passed)
    ckpt_path: str = ''
    resume_iter: int | None = None  # the learner goes on from its state after so many updates

    @property
    def name(self) -> str:
        """Kind and number."""
        return f'{self.kind}{self.index}'

    @property
    def role_seed(self) -> int:
        """The seed of this role in this incarnation."""
        return role_seed(self.seed, self.kind, self.index, self.incarnation)

    def own_config(self) -> EasyDict:
        """
        Overview:
            The config of the run with this role's share of the envs. Policies that treat their envs differently know
            all of them, and which of them are here.
        """
        cfg = EasyDict(self.cfg)
        if 'context' in cfg.env.manager:
            cfg.env.manager.context = 'forkserver'  # a process with threads, as Ray's are, must not be forked
        if self.kind == 'learner' and self.count > 1:
            cfg.policy.use_distributed = True
            size = cfg.policy.learn.batch_size  # of each of several learners: together they take as many as one would
            cfg.policy.learn.batch_size = tree.map(lambda rows: math.ceil(rows / self.count), size)
        if self.kind == 'actor':
            cfg.env.actor_env_num = self.envs
            collect = cfg.policy.collect
            if 'env_num' in collect:
                collect.env_num = self.envs * self.count
            if 'env_offset' in collect:
                collect.env_offset = self.envs * self.index
        return cfg

    def own_env_setting(self) -> EnvSetting | None:
        """Of the env configs that the caller passed, those of this actor."""
        if self.passed.env_setting is None or self.kind != 'actor':
            return self.passed.env_setting
        env_fn, collecting, evaluating = self.passed.env_setting
        first = self.envs * self.index
        return env_fn, [collecting[(first + k) % len(collecting)] for k in range(self.envs)], evaluating


class Role:
    """
    Overview:
        Base of the roles: the config of this process, its seed and its threads.
    Interfaces:
        ready, ping, close
    """

    def __init__(self, spec: RoleSpec) -> None:
        self.spec = spec
        self.cfg = spec.own_config()
        self.events: Any = None
        self.stack = contextlib.ExitStack()
        import_modules(self.cfg.import_names or [])
        torch.set_num_threads(self.cfg.policy.torch_threads or 1)
        set_pkg_seed(spec.role_seed, use_cuda=self.cfg.policy.use_cuda)

    def build_policy(self, env_info: Any, modes: tuple[str, ...]) -> Policy:
        """The policy of the run, with these modes."""
        passed = self.spec.passed
        return build_policy(self.cfg, policy_class(self.cfg, passed.policy), passed.model, env_info, modes)

    def ready(self) -> dict[str, Any]:
        """Answered when the role has been built."""
        return {'pid': os.getpid(), 'events': self.take_events()}

    def ping(self) -> dict[str, Any]:
        """Whether it lives."""
        return {'events': self.take_events()}

    def take_events(self) -> list[str]:
        """Warnings since the last answer."""
        return [] if self.events is None else self.events.take()

    def close(self) -> None:
        """End envs and files of this role."""
        self.stack.close()
