"""Eval mode: load a checkpoint, play episodes, answer the returns."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from nervex.config import compile_config
from nervex.entry.build import EVALUATION_SEED_OFFSET, EnvSetting, build_env_managers, build_policy, policy_class
from nervex.utils import CheckpointError
from nervex.utils.default_helper import set_pkg_seed
from nervex.worker.actor import BaseSerialEvaluator
from nervex.worker.actor.base_serial_evaluator import Evaluation
from nervex.worker.learner.checkpoints import load_checkpoint_file


def eval(
    cfg: str | dict,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    policy_type: Any = None,
    model: Any = None,
    *,
    load_path: str | None = None,
    n_episode: int | None = None,
    overrides: tuple[str, ...] = (),
) -> Evaluation:
    """
    Overview:
        Play ``n_episode`` episodes with the eval mode of a trained policy. Only the eval mode is built.
    Arguments:
        - load_path (:obj:`str | None`): the checkpoint; None takes ``learner.load_path`` of the config
        - n_episode (:obj:`int | None`): None takes ``evaluator.n_episode``
    Returns:
        - result (:obj:`Evaluation`): ``returns`` and ``lengths`` of the episodes, ``mean``
    """
    resolved = compile_config(cfg, policy=policy_type, model=model, env=env_setting, overrides=list(overrides))
    path = load_path or resolved.learner.load_path
    if not path:
        raise CheckpointError('eval: no checkpoint given; pass --load FILE (load_path=...) or set learner.load_path')
    state = load_checkpoint_file(path)
    set_pkg_seed(seed, use_cuda=resolved.policy.use_cuda)
    with ExitStack() as stack:
        (manager,) = build_env_managers(resolved, env_setting, seed, stack, roles=('evaluator',))
        policy = build_policy(resolved, policy_class(resolved, policy_type), model, manager.env_info(), ('eval',))
        try:
            policy.eval_mode.load_state_dict(state)
        except RuntimeError as e:
            raise CheckpointError(f'{path}: is a checkpoint of another model: {e}') from e
        evaluator = BaseSerialEvaluator(resolved.evaluator, exp_name=None, seed=seed + EVALUATION_SEED_OFFSET)
        evaluator.env, evaluator.policy = manager, policy.eval_mode
        return evaluator.evaluate(n_episode)
