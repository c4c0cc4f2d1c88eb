"""Row form and batched form of every built-in policy agree, and a policy for which they differ is found out."""

import copy

import pytest
import torch

from app_zoo.classic_control.cartpole.envs import CartPoleEnv
from nervex.policy import batched, check_batched, create_policy
from nervex.policy.dqn import DQNPolicy
from nervex.policy.equivalence import BatchedMismatch
from nervex.utils import POLICY_REGISTRY
from nervex.worker.actor.env_manager import create_env_manager

EXTRA = {'dqn': dict(learn=dict(algo=dict(nstep=3)), collect=dict(algo=dict(nstep=3)))}


@pytest.fixture
def env():
    manager = create_env_manager('base', CartPoleEnv, [{}] * 3, {})
    manager.seed(0)
    with manager:
        manager.launch()
        yield manager


def make(policy_type, model=None, cls=None):
    torch.manual_seed(0)
    cfg = dict(
        policy_type=policy_type, model=dict(obs_dim=4, action_dim=2), **copy.deepcopy(EXTRA.get(policy_type, {}))
    )
    policy = cls(cfg, enable_field=['collect']) if cls else create_policy(cfg, enable_field=['collect'])
    if 'eps' in policy._collect_setting_set:
        policy.set_setting('collect', {'eps': 0.5})
    return policy


@pytest.mark.parametrize('policy_type', ['dqn', 'ppo'])
def test_built_in_policies_agree(policy_type, env):
    assert policy_type in POLICY_REGISTRY
    assert check_batched(make(policy_type), env, steps=60) == 180


def test_a_policy_whose_forms_differ_is_named_with_its_column(env):
    class Wrong(DQNPolicy):
        @batched
        def _process_transition(self, obs, armor_output, timestep):
            out = dict(super()._process_transition(obs, armor_output, timestep))
            out['reward'] = timestep.reward + obs[0].sum()  # row: all of obs; block: the first env's row
            return out

    with pytest.raises(BatchedMismatch, match="column 'reward' differs"):
        check_batched(make('dqn', cls=Wrong), env)
