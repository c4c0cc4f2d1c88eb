"""The role that evaluates: evaluation envs, eval mode and evaluator of serial mode in a process of their own."""

from __future__ import annotations

import os
from typing import Any

from nervex.parallel.role import Role, RoleSpec
from nervex.parallel.scaling import Scaling
from nervex.parallel.weights import load
from nervex.run.build import EVALUATION_SEED_OFFSET, build_env_managers
from nervex.utils import COMM_ACTOR_REGISTRY
from nervex.utils.log_helper import TextLogger
from nervex.worker.actor import BaseSerialEvaluator


@COMM_ACTOR_REGISTRY.register('ray_evaluator')
class EvaluatorRole(Role):
    """``evaluate`` plays the episodes of one evaluation with the weights that it is given."""

    def __init__(self, spec: RoleSpec) -> None:
        super().__init__(spec)
        (manager,) = build_env_managers(self.cfg, spec.env_setting, spec.seed, self.stack, roles=('evaluator',))
        self.scaling = Scaling(manager, frozen=True)
        policy = self.build_policy(manager.env_info(), ('eval',))
        self.evaluator = BaseSerialEvaluator(self.cfg.evaluator, None, seed=spec.seed + EVALUATION_SEED_OFFSET)
        self.evaluator.env, self.evaluator.policy = manager, policy.eval_mode

    def evaluate(self, task: dict[str, Any], request: dict[str, Any], weights: dict) -> dict[str, Any]:
        """The returns, and whether they reach the stop value (with as many more episodes to confirm it)."""
        load(self.evaluator.policy, self.scaling.adopt(weights))
        if task['setting']:
            self.evaluator.policy.set_setting('eval', task['setting'])
        reached, result = self.evaluator.judge()
        path = os.path.join(self.spec.exp_path, 'log', 'evaluator')
        with TextLogger(path, f'{task["task_id"]}_{os.getpid()}') as log:
            log.info(
                f'{self.spec.name}: {len(result.returns)} episodes with the weights of update '
                f'{request["train_iter"]}, mean return {result.mean:.3f}, {result.seconds:.3f} s'
            )
        return {
            'reached': reached,
            'returns': result.returns,
            'lengths': result.lengths,
            'seconds': result.seconds,
            'events': self.take_events(),
            **request,
        }
