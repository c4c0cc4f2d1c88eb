"""What every role is told, and how its process is made ready."""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass
from typing import Any

import torch
from easydict import EasyDict

from nervex.parallel.plan import role_seed
from nervex.policy import Policy
from nervex.run.build import EnvSetting, build_policy, policy_class
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
    env_setting: EnvSetting | None = None
    policy: Any = None
    model: Any = None
    ckpt_path: str | None = None
    rendezvous: str | None = None  # where several learners meet
    resume_iter: int | None = None  # the learner goes on from its state after so many updates

    @property
    def name(self) -> str:
        return f'{self.kind}{self.index}'

    @property
    def role_seed(self) -> int:
        """The seed of this role in this incarnation."""
        return role_seed(self.seed, self.kind, self.index, self.incarnation)


class Role:
    """
    Overview:
        Base of the roles: the config of this process, its seed and its threads.
    Interfaces:
        ready, close
    """

    def __init__(self, spec: RoleSpec) -> None:
        self.spec = spec
        self.cfg = own_config(spec)
        self.events: Any = None
        self.stack = contextlib.ExitStack()
        import_modules(self.cfg.import_names or [])
        torch.set_num_threads(self.cfg.policy.torch_threads or 1)
        set_pkg_seed(spec.role_seed, use_cuda=self.cfg.policy.use_cuda)

    def build_policy(self, env_info: Any, modes: tuple[str, ...]) -> Policy:
        """The policy of the run, with these modes."""
        cls = policy_class(self.cfg, self.spec.policy)
        return build_policy(self.cfg, cls, self.spec.model, env_info, modes)

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


def own_config(spec: RoleSpec) -> EasyDict:
    """
    Overview:
        The config of the run with this role's share of the envs. Policies that treat their envs differently know all
        of them, and which of them are here.
    """
    cfg = EasyDict(spec.cfg)
    if 'context' in cfg.env.manager:
        cfg.env.manager.context = 'forkserver'  # a process with threads, as Ray's are, must not be forked
    if spec.kind == 'learner' and spec.count > 1:
        cfg.policy.use_distributed = True
        cfg.policy.learn.batch_size = _shared_out(cfg.policy.learn.batch_size, spec.count)
    if spec.kind == 'actor':
        cfg.env.actor_env_num = spec.envs
        collect = cfg.policy.collect
        if 'env_num' in collect:
            collect.env_num = spec.envs * spec.count
        if 'env_offset' in collect:
            collect.env_offset = spec.envs * spec.index
    return cfg


def _shared_out(size: Any, learners: int) -> Any:
    """The rows of one update of one of several learners: together they take as many as one would."""
    if isinstance(size, dict):
        return {name: _shared_out(rows, learners) for name, rows in size.items()}
    return math.ceil(size / learners)


def own_env_setting(spec: RoleSpec) -> EnvSetting | None:
    """Of the env configs that the caller passed, those of this actor."""
    if spec.env_setting is None or spec.kind != 'actor':
        return spec.env_setting
    env_fn, collecting, evaluating = spec.env_setting
    first = spec.envs * spec.index
    return env_fn, [collecting[(first + k) % len(collecting)] for k in range(spec.envs)], evaluating
