"""Images of an env: the net for them, and where their channels are, follow from the space; a config overrules that."""

import gymnasium
import numpy as np
import pytest
import torch

from nervex.config import compile_config
from nervex.entry import serial_pipeline
from nervex.model import ConvDiscreteNet
from nervex.utils import ConfigError


class Pixels(gymnasium.Env):
    """A bright image wants action 1, a dark one 0."""

    shape: tuple = (12, 10, 3)
    action_space = gymnasium.spaces.Discrete(2)

    @property
    def observation_space(self):
        return gymnasium.spaces.Box(0, 255, self.shape, np.uint8)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._look(), {}

    def step(self, action):
        reward, self.steps = float(action == self.bright), self.steps + 1
        return self._look(), reward, False, self.steps == 8, {}

    def _look(self):
        self.bright = int(self.np_random.integers(2))
        return np.full(self.shape, 200 * self.bright, np.uint8)


class Wide(Pixels):
    shape = (48, 40, 3)


class First(Pixels):
    shape = (3, 48, 40)


def config(policy, env, **model):
    return dict(
        env=dict(env_type='gym', env_fn=env),
        policy=dict(policy_type=policy, model=model, learn=dict(batch_size=16)),
        actor=dict(n_sample=32),
        evaluator=dict(n_episode=2),
        commander=dict(max_env_step=96),
        exp_name='run',
    )


@pytest.mark.parametrize(
    'policy, env, net, kernels',
    [
        ('dqn', Pixels, 'conv_discrete_net', [3, 3]),
        ('ppo', Wide, 'conv_vac', None),
        ('ppo', First, 'conv_vac', None),
        ('qrdqn', Pixels, 'qr_conv', [3, 3]),
        ('sqn', Wide, 'conv_sqn', None),
        ('sac_discrete', Pixels, 'conv_sac_discrete', [3, 3]),
    ],
)
def test_a_run_on_images_takes_a_conv_net_and_says_so(policy, env, net, kernels, caplog):
    result = serial_pipeline(config(policy, env), seed=0)
    said = ' '.join(record.getMessage() for record in caplog.records)
    assert result.train_iters > 0 and f"model_type='{net}'" in said
    assert ("layout='chw'" if env is First else "layout='hwc'") in said
    model = compile_config('run/log/config.yaml').policy.model
    assert (model.model_type, model.get('kernels')) == (net, kernels) and model.obs_dim == list(env.shape)


def test_a_config_overrules_the_choice(caplog):
    assert compile_config(config('dqn', Pixels, model_type='fc_discrete_net')).policy.model.obs_dim == [12, 10, 3]
    model = compile_config(config('ppo', Wide, model_type='conv_vac', layout='hwc')).policy.model
    assert model.model_type == 'conv_vac' and not caplog.records
    model = compile_config(config('dqn', Wide, channels=[8], kernels=[4], strides=[4])).policy.model
    assert model.model_type == 'conv_discrete_net' and model.channels == [8]


@pytest.mark.parametrize('name', ['sqn', 'sac_discrete'])
def test_a_dense_net_may_be_taken_for_images_by_name(name):
    assert serial_pipeline(config(name, Wide, model_type=name), seed=0).train_iters > 0


class Steered(Wide):
    """Images, and an action that is a number."""

    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def step(self, action):
        return super().step(int(action[0] > 0))


@pytest.mark.parametrize('policy', ['ddpg', 'td3', 'sac', 'ppo', 'a2c', 'impala'])
def test_continuous_actions_on_images(policy):
    if policy in ('ppo', 'a2c', 'impala'):
        assert serial_pipeline(config(policy, Steered), seed=0).train_iters > 0
    else:
        with pytest.raises(ConfigError, match='the policy has no net for them'):
            serial_pipeline(config(policy, Steered), seed=0)


def test_the_layout_changes_nothing_but_the_axes():
    torch.manual_seed(0)
    first = ConvDiscreteNet([3, 48, 40], 2)
    last = ConvDiscreteNet([48, 40, 3], 2)
    last.load_state_dict(first.state_dict())
    obs = torch.randint(0, 256, (5, 3, 48, 40), dtype=torch.uint8)
    assert torch.allclose(first({'obs': obs})['logit'], last({'obs': obs.movedim(-3, -1)})['logit'], atol=1e-6)
    assert ConvDiscreteNet([48, 50, 40], 2, layout='chw').encoder.convs[0].in_channels == 48
    with pytest.raises(ValueError, match="layout: 'auto', 'chw' or 'hwc', got 'nhwc'"):
        ConvDiscreteNet([3, 48, 40], 2, layout='nhwc')


@pytest.mark.parametrize('policy', ['a2c', 'ppo', 'ppo_vanilla'])
def test_a_network_without_a_value_is_named(policy):
    cfg = config(policy, Pixels, model_type='fc_discrete_net')
    with pytest.raises(ConfigError, match=r'policy.model: FCDiscreteNet answers .*logit.*, but no value'):
        serial_pipeline(cfg, seed=0)
