"""A policy that acts outside of a run: on observations as an env gives them, with actions as the env takes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from easydict import EasyDict

from nervex.config import compile_config
from nervex.data import Batch
from nervex.envs import GymEnv, get_vec_env_setting
from nervex.envs.spaces import space_kind, to_gymnasium
from nervex.run.build import build_policy, env_info, load_weights, policy_class
from nervex.run.state import load_random_state, random_state
from nervex.utils import tree
from nervex.utils.class_config import merge_config
from nervex.worker.actor.batch_style import BatchPolicy
from nervex.worker.actor.env_manager.normalize import Normalizer
from nervex.worker.learner.checkpoints import load_checkpoint_file


class Acting:
    """
    Overview:
        ``acting(obs)`` answers the action that the evaluator of the run would take: observations are encoded and scaled
        as there, actions come back in the env's own form and bounds. Of a Gymnasium env these are the forms of the
        object that ``gymnasium.make`` answers, with the ``env.wrappers`` around it; of a BaseEnv its own.
    Arguments:
        - cfg (:obj:`Mapping`): the config of the run
        - checkpoint (:obj:`str | None`): a file; None: weights as a run with this seed begins with
    Interfaces:
        reset, policy; how observations and actions cross: info, space, codecs, scaling
    """

    def __init__(self, cfg: Mapping, checkpoint: str | None = None, seed: int = 0) -> None:
        self._cfg, self._seed, self._source = compile_config(cfg, needs_env=True), seed, checkpoint
        self._state = None if checkpoint is None else load_checkpoint_file(checkpoint)
        env_fn, _, env_cfgs = get_vec_env_setting(self._cfg.env)
        self.info, self._env = env_info(self._cfg, None), None
        if isinstance(env_fn, type) and issubclass(env_fn, GymEnv):
            self._env = env_fn(env_cfgs[0])
            self.space = self._env.env.observation_space
        else:
            self.space = to_gymnasium(self.info.obs_space)
        self.scaling = self._normalizer()
        self._build(self._cfg.env.evaluator_env_num)

    def _normalizer(self) -> Normalizer | None:
        if self._state is not None:
            return Normalizer.of_checkpoint(self._state)
        if not self._cfg.env.manager.get('norm_obs'):
            return None
        made = Normalizer(clip=self._cfg.env.manager.norm_clip)
        made.freeze()
        return made

    def _build(self, rows: int) -> None:
        """The policy, with memory for so many rows."""
        self._rows, self._memory, before = rows, None, random_state()
        counts = {mode: dict(env_num=rows) for mode in ('collect', 'eval') if 'env_num' in self._cfg.policy[mode]}
        cfg = EasyDict(self._cfg, policy=merge_config(self._cfg.policy, counts))
        torch.manual_seed(self._seed)
        try:
            self.policy = build_policy(cfg, policy_class(cfg, None), None, self.info, ('collect', 'eval', 'command'))
        finally:
            load_random_state(before)
        self._acting = BatchPolicy(self.policy)
        if self._state is not None:
            load_weights(self.policy, self._state, self._source)
            self._acting.env_steps = int(self._state.get('envstep', 0))
            self._acting.updates = int(self._state.get('last_iter', 0))

    @property
    def codecs(self) -> tuple[Any, Any]:
        """The ActionCodec and ObsCodec of a Gymnasium env; of a BaseEnv, which has none, a pair of None."""
        return (None, None) if self._env is None else self._env.codecs

    def reset(self) -> None:
        """Episodes begin anew: what a recurrent policy remembers is gone."""
        self._memory = None

    def __call__(self, obs: Any, deterministic: bool = True) -> Any:
        """
        Overview:
            The action for one observation, or for each of a batch of them.
        Arguments:
            - obs (:obj:`Any`): as the env gives it; a batch has one more axis in front, or is a list where observations
              are dicts or tuples. A recurrent policy takes row k of each call for the episode of row k
            - deterministic (:obj:`bool`): False: explore as while collecting
        """
        count = self._count(obs)
        rows = [obs]
        if count is not None:
            rows = obs if isinstance(obs, list) else [_row(self.space, obs, k) for k in range(count)]
        if len(rows) > self._rows:
            self._build(len(rows))
        if self._memory is not None and len(self._memory) != len(rows):
            self.reset()
        encode = partial(_as_described, self.space) if self._env is None else self._env.codecs[1]
        block = tree.stack([encode(row) for row in rows])
        if self.scaling is not None:
            block = self.scaling.observe(block, count=False)
        found = self._acting.train(not deterministic)(Batch(obs=block), self._memory)
        self._memory = found.state
        if self._env is None:
            return found.act[0] if count is None else found.act
        actions = [self._env.codecs[0].to_env(action) for action in found.act]
        return actions[0] if count is None else actions if isinstance(actions[0], tuple) else np.stack(actions)

    def _count(self, obs: Any) -> int | None:
        """How many observations there are; None: one, not in a batch."""
        one = f'must be one observation of {self.space}, or a batch of them'
        if isinstance(obs, list) and space_kind(self.space) in ('Dict', 'Tuple'):
            for row in obs:
                if self._count(row) is not None:
                    raise ValueError(f'obs: got a list that holds {row!r}, {one}')
            leads: set[tuple[int, ...]] = {(len(obs),)}
        else:
            try:
                leads = {_lead(part, value) for _, part, value in arrays_in(self.space, obs)}
            except (KeyError, IndexError, TypeError, ValueError) as e:
                pair = isinstance(obs, tuple) and len(obs) == 2 and isinstance(obs[1], dict)
                hint = '; reset() answers a pair, the first of which it is' if pair else ''
                raise ValueError(f'obs: got {type(obs).__name__} ({e}), {one}{hint}') from e
        if len(leads) > 1:
            raise ValueError(f'obs: got parts that are batches of different lengths, {sorted(leads)}, {one}')
        (lead,) = leads or {()}
        if lead == (0,):
            raise ValueError(f'obs: got an empty batch, {one}')
        return lead[0] if lead else None


def arrays_in(space: Any, obs: Any, name: str = 'obs') -> Iterator[tuple[str, Any, Any]]:
    """Name, space and value of each array of observations; a policy sees no texts."""
    kind = space_kind(space)
    if kind in ('Dict', 'Tuple'):
        for key, part in space.spaces.items() if kind == 'Dict' else enumerate(space.spaces):
            yield from arrays_in(part, obs[key], f'{name}.{key}')
    elif kind != 'Text':
        yield name, space, obs


def _lead(space: Any, obs: Any) -> tuple[int, ...]:
    """The axis, if any, in front of those that the space gives an array; ValueError where it does not fit."""
    values = np.asarray(obs)
    front = values.shape[: max(values.ndim - len(space.shape), 0)]
    if len(front) > 1 or values.shape != front + tuple(space.shape):
        raise ValueError(f'the shape {values.shape}')
    if space_kind(space) == 'Discrete' and not all(space.contains(x) for x in values.reshape(-1)):
        raise ValueError(f'{obs!r}')
    return front


def _row(space: Any, obs: Any, k: int) -> Any:
    """Row k of a batch of observations."""
    kind = space_kind(space)
    if kind == 'Dict':
        return {key: _row(part, obs[key], k) for key, part in space.spaces.items()}
    if kind == 'Tuple':
        return tuple(_row(part, obs[i], k) for i, part in enumerate(space.spaces))
    return obs[k]


def _as_described(space: Any, obs: Any) -> Any:
    """Arrays of the space's kinds of numbers."""
    if space_kind(space) == 'Dict':
        return {key: _as_described(part, obs[key]) for key, part in space.spaces.items()}
    return np.asarray(obs, space.dtype)
