"""Eval mode and collect mode: load a checkpoint, play episodes; answer the returns, or save the episodes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from easydict import EasyDict

from nervex.envs.common import EnvElementInfo
from nervex.envs.spaces import MASK, random_action
from nervex.policy.batched import batched
from nervex.run.build import EVALUATION_SEED_OFFSET, build_env_managers, build_policy, load_weights, policy_class
from nervex.run.launch import EnvSetting, Passed, prepare_launch
from nervex.utils import ConfigError, NothingThereError, unknown_name
from nervex.utils.default_helper import set_pkg_seed
from nervex.worker.actor import BaseSerialEvaluator
from nervex.worker.actor.base_serial_evaluator import Evaluation
from nervex.worker.actor.env_manager.normalize import load_for_evaluation
from nervex.worker.actor.recorder import EpisodeRecorder
from nervex.worker.actor.rows import ObsBlock
from nervex.worker.learner.checkpoints import load_checkpoint_file

ACTS = ('greedy', 'sampled', 'random')


def eval(
    cfg: str | dict | None,
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
        - cfg (:obj:`str | dict | None`): None takes that of the run which ``load_path`` is of
        - load_path (:obj:`str | None`): the checkpoint, or the folder of a run, whose best one is taken; None takes
          ``learner.load_path`` of the config
        - n_episode (:obj:`int | None`): None takes ``evaluator.n_episode``
    Returns:
        - result (:obj:`Evaluation`): ``returns`` and ``lengths`` of the episodes, ``mean``
    """
    passed = Passed(env_setting, policy_type, model)
    resolved = config_to_play(cfg, seed, passed, load_path, overrides)
    with trained_evaluator(resolved, seed, passed) as evaluator:
        return evaluator.evaluate(n_episode)


def collect(
    cfg: str | dict | None,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    policy_type: Any = None,
    model: Any = None,
    *,
    load_path: str | None = None,
    n_episode: int | None = None,
    overrides: tuple[str, ...] = (),
    folder: str = 'data',
    acts: str = 'greedy',
) -> tuple[Evaluation, int]:
    """
    Overview:
        Play as ``eval`` does, and save whole episodes as trajectory files: ``obs, action, reward, next_obs, done,
        truncated``. ``nervex.data.TrajectoryDataset(folder)`` reads them back. Observations are the env's own, also
        where the policy sees them scaled (``env.manager.norm_obs``), so that a file means the same to every reader.
    Arguments:
        - folder (:obj:`str`): where the numbered files go
        - acts (:obj:`str`): 'greedy', as ``eval`` plays; 'sampled', as the policy explores at that point of its run;
          'random', any legal action, for which no checkpoint is needed
    Returns:
        - result, written: the evaluation, and the episodes saved; one in which an env failed is left out
    """
    passed = Passed(env_setting, policy_type, model)
    if acts not in ACTS:
        raise ValueError(unknown_name('way to act (acts)', acts, ACTS))
    resolved = config_to_play(cfg, seed, passed, load_path, overrides, needed=acts != 'random')
    with trained_evaluator(resolved, seed, passed, acts) as evaluator, contextlib.ExitStack() as stack:
        manager = evaluator.env
        if manager.asynchronous:
            text = f"got '{resolved.env.env_manager_type}', but episodes are saved of envs that step together"
            raise ConfigError([f'env.env_manager_type: {text}; take sync_subprocess, or base'])
        writer = EpisodeRecorder(folder)
        stack.enter_context(writer)

        def record(block: Any, action: np.ndarray, step: Any) -> None:
            writer.see(manager, block.env_id, block.obs, action, step)

        result = evaluator.evaluate(n_episode, on_step=record)
        writer.flush()
        return result, writer.written


def config_to_play(
    cfg: str | dict | None,
    seed: int,
    passed: Passed,
    load_path: str | None,
    overrides: tuple[str, ...],
    needed: bool = True,
) -> EasyDict:
    """The resolved config, whose ``learner.load_path`` is the checkpoint; an error if one is needed and not given."""
    resolved = prepare_launch(cfg, seed, passed, overrides, load_path=load_path, collects=False).cfg
    if needed and not resolved.learner.load_path:
        raise NothingThereError('no checkpoint given; pass --load FILE (load_path=...) or set learner.load_path')
    return resolved


@contextlib.contextmanager
def trained_evaluator(
    resolved: EasyDict, seed: int, passed: Passed, acts: str = 'greedy'
) -> Iterator[BaseSerialEvaluator]:
    """
    Overview:
        An evaluator with the eval mode of a trained policy, or what else ``acts`` says (see ``collect``), and nothing
        else of a run; its envs close behind it. Where the config names no checkpoint, the policy is as a run begins
        with.
    """
    path = resolved.learner.load_path
    state = load_checkpoint_file(path) if path else None
    set_pkg_seed(seed, use_cuda=resolved.policy.use_cuda)
    with contextlib.ExitStack() as stack:
        (manager,) = build_env_managers(resolved, passed.env_setting, seed, stack, roles=('evaluator',))
        if state is not None:
            load_for_evaluation(manager, state, path)
        elif manager.normalizer is not None:
            manager.normalizer.freeze()
        evaluator = BaseSerialEvaluator(resolved.evaluator, exp_name=None, seed=seed + EVALUATION_SEED_OFFSET)
        evaluator.env = manager
        if acts == 'random':
            evaluator.policy = RandomPlay(manager.env_info().act_space, seed)
        else:
            evaluator.policy = _trained_mode(resolved, passed, manager, state, path, acts)
        yield evaluator


def _trained_mode(
    resolved: EasyDict, passed: Passed, manager: Any, state: dict[str, Any] | None, path: str | None, acts: str
) -> Any:
    """What a policy acts by: its eval mode, or its collect mode, which explores as it did at its checkpoint."""
    fields = ('eval', 'collect', 'command') if acts == 'sampled' else ('eval',)
    if acts == 'sampled' and 'env_num' in resolved.policy.collect:
        resolved.policy.collect.env_num = manager.env_num  # memories are kept for so many
    cls = policy_class(resolved, passed.policy)
    policy = build_policy(resolved, cls, passed.model, manager.env_info(), fields)
    if state is not None:
        load_weights(policy, state, path)
    if acts == 'greedy' or state is None:
        return policy.eval_mode
    policy.collect_mode.load_state_dict(state)
    steps, updates, limit = state['envstep'], state['last_iter'], resolved.commander.max_env_step
    told = dict(learner_step=updates, train_iter=updates, envstep=steps, total_collect_step=steps)
    told['progress'] = min(1.0, steps / limit) if limit not in (None, -1) else 0.0
    policy.set_setting('collect', policy.command_mode.get_setting_collect(told))
    return policy.collect_mode


class RandomPlay:
    """An eval mode that takes any legal action, each as likely as the others."""

    def __init__(self, space: EnvElementInfo, seed: int) -> None:
        self._space, self._rng = space, np.random.default_rng(seed)

    @batched
    def data_preprocess(self, block: ObsBlock) -> tuple[np.ndarray, dict[str, Any]]:
        """The rows as they are."""
        return block.env_id, {'obs': block.obs}

    @batched
    def forward(self, data_id: np.ndarray, data: dict[str, Any]) -> dict[str, np.ndarray]:
        """An action for each row."""
        obs = data['obs']
        masks = obs[MASK] if isinstance(obs, Mapping) and MASK in obs else [None] * len(data_id)
        return {'action': np.stack([random_action(self._space, self._rng, mask) for mask in masks])}

    @batched
    def data_postprocess(self, data_id: np.ndarray, output: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The actions as they are."""
        return output

    def reset(self, data_id: list[int] | None = None) -> None:
        """Nothing is remembered."""

    def get_attribute(self, name: str) -> Any:
        """Where actions are drawn."""
        return {'device': torch.device('cpu')}[name]
