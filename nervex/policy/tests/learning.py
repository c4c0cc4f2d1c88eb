"""Short training runs on toy problems, whole or with a policy that was broken on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nervex.entry import serial_pipeline
from nervex.utils.class_config import merge_config

BASE: dict[str, Any] = dict(
    policy=dict(
        model=dict(hidden_dim_list=[32]),
        learn=dict(learning_rate=5e-3, batch_size=32),
    ),
    actor=dict(n_sample=8),
    evaluator=dict(n_episode=20, eval_freq=200),
    commander=dict(max_env_step=3000),
)


def train(policy: str | type, env: type, cfg: Mapping[str, Any], seed: int = 0, env_cfg: Any = None) -> Any:
    """
    Overview:
        Train on a toy problem with 4 envs, with ``BASE`` below the given settings.
    Arguments:
        - policy (:obj:`str | type`): registered name, or class
        - env_cfg (:obj:`dict | None`): settings of every env
    """
    cfg = merge_config(merge_config(BASE, cfg), dict(env={}))
    if 'n_episode' in cfg['actor']:
        del cfg['actor']['n_sample']
    policy_fn = None
    if isinstance(policy, str):
        cfg['policy']['policy_type'] = policy
    else:
        policy_fn = policy
    cfgs = [dict(env_cfg or {}) for _ in range(4)]
    return serial_pipeline(cfg, seed=seed, env_setting=(env, cfgs, cfgs), policy_fn=policy_fn)


def wrong_sign(cls: type) -> type:
    """The same policy, learning uphill."""

    class WrongSign(cls):
        def _loss(self, data: dict) -> tuple:
            loss, info = super()._loss(data)
            return -loss, info

    return WrongSign


def no_bootstrap(cls: type) -> type:
    """The same policy, for which every step is the last one of its episode."""

    class NoBootstrap(cls):
        def _data_preprocess_learn(self, data: Any) -> dict:
            out = super()._data_preprocess_learn(data)
            out['done'] = (out['done'] * 0 + 1) if out.get('done') is not None else None
            return out

    return NoBootstrap


def by_rows(cls: type) -> type:
    """The same policy in the documented row form: one call an env, and deques of rows."""

    class ByRows(cls):
        def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict:
            return super()._process_transition(obs, armor_output, timestep)

        def _get_train_sample(self, traj_cache: Any) -> list:
            return super()._get_train_sample(traj_cache)

    return ByRows
