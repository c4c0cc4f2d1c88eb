"""Policies on images of bytes, 84 x 84, that stay bytes until the network."""

import numpy as np
import pytest

from nervex.data import BufferManager
from nervex.policy.tests.learning import train
from nervex.policy.tests.toy_envs import BrightSideEnv
from nervex.utils.class_config import merge_config

SMALL = dict(hidden_dim_list=[32], channels=[8, 8], kernels=[8, 4], strides=[6, 3])
BASE = dict(
    policy=dict(
        learn=dict(learning_rate=3e-3, batch_size=16, train_step=2, algo=dict(discount_factor=0.5)),
        command=dict(eps=dict(start=1.0, end=0.2, decay=60)),
    ),
    replay_buffer=dict(meta_maxlen=1000),
    evaluator=dict(n_episode=8),
)
MODELS = {
    'dqn': dict(model_type='conv_discrete_net', **SMALL),
    'rainbow_dqn': dict(model_type='noise_dist_conv', v_min=-2.0, v_max=2.0, n_atom=21, **SMALL),
    'qrdqn': dict(model_type='qr_conv', num_quantiles=8, **SMALL),
    'r2d2': dict(model_type='convr_discrete_net', **SMALL),
}
ACTOR_CRITIC = {
    'ppo': dict(model_type='conv_vac', **SMALL),
    'a2c': dict(model_type='conv_vac', **SMALL),
    'ppo_vanilla': dict(model_type='conv_vac', **SMALL),
    'ppg': dict(model_type='conv_ppg', **SMALL),
    'impala': dict(model_type='conv_vac', **SMALL),
    'ppo_recurrent': dict(model_type='convr_vac', lstm_hidden_dim=16, **SMALL),
}
SEQUENCES = dict(collect=dict(unroll_len=4, traj_len=4))
MORE = {
    'a2c': dict(policy=dict(learn=dict(batch_size=32))),
    'impala': dict(policy=dict(learn=dict(train_step=2), **SEQUENCES), actor=dict(n_sample=8)),
    'ppo_recurrent': dict(policy=dict(learn=dict(batch_size=4), **SEQUENCES), actor=dict(n_sample=8)),
}


def config(name, **limits):
    if name in ACTOR_CRITIC:
        learn = dict(learning_rate=3e-3, batch_size=16, algo=dict(discount_factor=0.5))
        cfg = dict(policy=dict(model=ACTOR_CRITIC[name], learn=learn), actor=dict(n_sample=32), commander=limits)
        return merge_config(merge_config(cfg, dict(evaluator=dict(n_episode=8, eval_freq=50))), MORE.get(name, {}))
    cfg = merge_config(BASE, dict(policy=dict(model=MODELS[name]), commander=limits))
    if name == 'r2d2':
        cfg = merge_config(cfg, dict(policy=dict(collect=dict(unroll_len=5, traj_len=5)), actor=dict(n_sample=4)))
    return cfg


@pytest.mark.parametrize('name', [*MODELS, *ACTOR_CRITIC])
def test_images_stay_bytes_in_the_buffer(name, monkeypatch):
    stored = []
    original = BufferManager.push_data
    monkeypatch.setattr(BufferManager, 'push_data', lambda self, data: stored.append(data) or original(self, data))
    result = train(name, BrightSideEnv, config(name, max_train_iter=4))
    assert result.train_iters >= 4
    assert stored[0]['obs'].dtype == np.uint8 and stored[0]['obs'].shape[-3:] == (1, 84, 84)


@pytest.mark.slow
@pytest.mark.parametrize('name', [*MODELS, *ACTOR_CRITIC])
def test_learns_from_images(name):
    cfg = merge_config(config(name, max_env_step=3000), dict(evaluator=dict(stop_val=2)))
    assert train(name, BrightSideEnv, cfg).solved
