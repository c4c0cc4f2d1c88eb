"""What every role is told, how its process is made ready, and the roles that act: actors and evaluators."""

from __future__ import annotations

import contextlib
import copy
import math
import os
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from easydict import EasyDict

from nervex.parallel.blocks import Header, load_weights, pack_block
from nervex.parallel.pace import role_seed
from nervex.policy import Policy
from nervex.run.build import EVALUATION_SEED_OFFSET, Passed, build_env_managers, build_policy, policy_class
from nervex.utils import ACTOR_REGISTRY, COMM_ACTOR_REGISTRY, tree
from nervex.utils.default_helper import set_pkg_seed
from nervex.utils.import_helper import import_modules
from nervex.utils.log_helper import TextLogger
from nervex.worker.actor import BaseSerialEvaluator

SCALING = 'normalizer'  # the running statistics that scale observations and rewards, beside the weights
_LINE_STEPS, _LINE_SHARE = 1000, 0.1  # env steps between two lines of an actor's log; that part of all, if it is more


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
            if cfg.actor.n_sample is not None:
                cfg.actor.n_sample = math.ceil(cfg.actor.n_sample / self.count)
            for key, value in (('env_num', self.envs * self.count), ('env_offset', self.envs * self.index)):
                if key in cfg.policy.collect:
                    cfg.policy.collect[key] = value
        return cfg

    def own_passed(self) -> Passed:
        """What the caller passed; of its configs of envs, an actor takes those in its turn."""
        if self.passed.env_setting is None or self.kind != 'actor':
            return self.passed
        env_fn, collecting, evaluating = self.passed.env_setting
        first = self.envs * self.index
        mine = [collecting[(first + k) % len(collecting)] for k in range(self.envs)]
        return replace(self.passed, env_setting=(env_fn, mine, evaluating))


class Role:
    """
    Overview:
        Base of the roles: the config of this process, its seed and its threads.
    Interfaces:
        begin, ping, progress, close
    """

    def __init__(self, spec: RoleSpec) -> None:
        self.spec, self.passed = spec, spec.own_passed()
        self.cfg = spec.own_config()
        self.events: Any = None
        self.relay: Any = None  # of what is logged here, to those who are told of the run
        self.stack = contextlib.ExitStack()
        import_modules(self.cfg.import_names or [])
        torch.set_num_threads(self.cfg.policy.torch_threads or 1)
        set_pkg_seed(spec.role_seed, use_cuda=self.cfg.policy.use_cuda)

    def build_policy(self, env_info: Any, modes: tuple[str, ...]) -> Policy:
        """The policy of the run, with these modes."""
        return build_policy(self.cfg, policy_class(self.cfg, self.passed.policy), self.passed.model, env_info, modes)

    def begin(self) -> dict[str, Any]:
        """Answered when the role has been built; the thread that will work tells torch how many threads it may use."""
        torch.set_num_threads(self.cfg.policy.torch_threads or 1)
        return {'pid': os.getpid(), **self.ping()}

    def ping(self) -> dict[str, Any]:
        """A number that changes while the role gets on with its work; warnings, and what was logged, since the last."""
        events, told = ([] if own is None else own.take() for own in (self.events, self.relay))
        return {'progress': self.progress(), 'events': events, 'told': told}

    def progress(self) -> float:
        """Tens of seconds that this process has worked."""
        return time.process_time() // 10

    def close(self) -> None:
        """End envs and files of this role."""
        self.stack.close()


class ActingRole(Role):
    """
    Overview:
        Launches envs, and counts their steps. Where observations or rewards are scaled, all roles do so by what the
        learner knows.
    """

    def __init__(self, spec: RoleSpec, env_role: str, seed: int) -> None:
        super().__init__(spec)
        self.rivals = copy.deepcopy(self.passed.rivals) if env_role == 'actor' else None  # roles share no memory
        (self.envs,) = build_env_managers(
            self.cfg, self.passed.env_setting, seed, self.stack, roles=(env_role,), rivals=self.rivals
        )
        self.scaling = self.envs.normalizer
        self._steps, self._advance = 0, self.envs.advance
        self.envs.advance = self._counted

    def _counted(self, *args: Any) -> Any:
        self._steps += 1
        return self._advance(*args)

    def progress(self) -> float:
        """Steps of the envs: who computes for ever in one of them does not get on."""
        return self._steps

    def load(self, mode: Any, weights: dict[str, Any], joins: bool) -> None:
        """
        Overview:
            Copy weights into a mode, and adopt what scales observations.
        Arguments:
            - joins (:obj:`bool`): what these envs showed meanwhile is kept; else only what came with the weights
        """
        if self.scaling is not None:
            weights = dict(weights)
            statistics = weights.pop(SCALING)
            (self.scaling.adopt if joins else self.scaling.load_state_dict)(statistics)
        load_weights(mode, weights)


@COMM_ACTOR_REGISTRY.register('ray')
class ActorRole(ActingRole):
    """
    Overview:
        ``collect`` takes the newest weights, collects, and answers a header and a block.
    """

    def __init__(self, spec: RoleSpec) -> None:
        super().__init__(spec, 'actor', spec.role_seed)
        if self.scaling is not None:
            self.scaling.share()
        cfg = self.cfg
        policy = self.build_policy(self.envs.env_info(), ('collect',))
        cfg.actor.collect_print_freq = 0  # see ``_say``
        if cfg.actor.get('collect_traj'):
            cfg.actor.collect_traj = os.path.join(cfg.actor.collect_traj, spec.name)
        self.actor = ACTOR_REGISTRY.get(cfg.actor.actor_type)(
            cfg.actor, spec.exp_path, None, spec.role_seed, log_name=None
        )
        self.stack.callback(self.actor.close)
        self.actor.env, self.actor.policy = self.envs, policy.collect_mode
        self.actor.recent_returns = deque()  # since the last answer
        ahead = 1 + (self.actor.policy.get_attribute('traj_overlap') or 0)  # steps to the next observation
        self._lags = (ahead * self.envs.env_num, ahead)  # in rows: of envs in step, of envs one after the other
        self._seq, self._say_at = 0, _LINE_STEPS
        self._version, self._train_iter = -1, 0
        self._task_id: str | None = None
        self._returns: deque[float] = deque(maxlen=100)

    def collect(self, task: dict[str, Any], request: dict[str, Any], weights: dict | None) -> tuple[Header, dict]:
        """
        Overview:
            Collect once.
        Arguments:
            - task (:obj:`dict`): what the commander wants this actor to do; a new ``task_id`` begins a new log file
            - request (:obj:`dict`): ``version`` and ``train_iter`` of the weights, ``setting`` of the policy, and how
              much: ``rows`` or ``episodes``; in a league ``rivals``, see ``SentOpponents.take``
            - weights (:obj:`dict | None`): None where the actor has this version
        """
        if task['task_id'] != self._task_id:
            self._task_id = task['task_id']
            self.actor.log.rename(f'{self._task_id}_{os.getpid()}')
            self.actor.log.line(f'{self.spec.name}, started {self.spec.incarnation} times before: {task}')
        if weights is not None and request['version'] != self._version:
            self.load(self.actor.policy, weights, joins=True)
            self._version, self._train_iter = request['version'], request['train_iter']
        if request['setting']:
            self.actor.policy.set_setting('collect', request['setting'])
        if self.rivals is not None:
            self.rivals.take(**request['rivals'])
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
            train_iter=self._train_iter,
            rows=rows,
            steps=info['step'],
            seconds=info['duration'],
            nbytes=nbytes,
            returns=list(self.actor.recent_returns),
            statistics=None if self.scaling is None else self.scaling.share(),
        )
        if self.rivals is not None:
            header.games, header.met = self.rivals.report()
        self._seq += 1
        self._returns.extend(header.returns)
        self.actor.recent_returns.clear()
        if info['total_step'] >= self._say_at:
            self._say(info, request['setting'])
        return header, columns

    def _say(self, info: dict[str, Any], setting: dict[str, Any]) -> None:
        """A line of the log: what came of the collecting so far."""
        steps, mean = info['total_step'], sum(self._returns) / max(len(self._returns), 1)
        self._say_at = steps + max(_LINE_STEPS, int(_LINE_SHARE * steps))
        self.actor.log.line(
            f'env step {steps}, {info["total_episode"]} episodes, mean return of the last {len(self._returns)} '
            f'{mean:.3f}, {steps / max(info["total_duration"], 1e-9):.0f} steps/s, {self._seq} blocks, '
            f'weights of update {self._train_iter}, setting {setting}'
        )


@COMM_ACTOR_REGISTRY.register('ray_evaluator')
class EvaluatorRole(ActingRole):
    """``evaluate`` plays the episodes of one evaluation with the weights that it is given."""

    def __init__(self, spec: RoleSpec) -> None:
        super().__init__(spec, 'evaluator', spec.seed)
        if self.scaling is not None:
            self.scaling.freeze()
        policy = self.build_policy(self.envs.env_info(), ('eval',))
        self.evaluator = BaseSerialEvaluator(self.cfg.evaluator, None, seed=spec.seed + EVALUATION_SEED_OFFSET)
        self.evaluator.env, self.evaluator.policy = self.envs, policy.eval_mode

    def evaluate(self, task: dict[str, Any], request: dict[str, Any], weights: dict) -> dict[str, Any]:
        """The evaluation, and whether it is good enough (with as many more episodes to confirm it)."""
        self.load(self.evaluator.policy, weights, joins=False)
        if task['setting']:
            self.evaluator.policy.set_setting('eval', task['setting'])
        reached, result = self.evaluator.judge()
        path = os.path.join(self.spec.exp_path, 'log', 'evaluator')
        with TextLogger(path, f'{task["task_id"]}_{os.getpid()}') as log:
            log.info(
                f'{self.spec.name}: {len(result.returns)} episodes with the weights of update '
                f'{request["train_iter"]}, mean return {result.mean:.3f}, {result.seconds:.3f} s'
            )
        return {'reached': reached, 'result': result, **request}
