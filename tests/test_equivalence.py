"""Row form and batched form of every built-in policy agree, and a policy for which they differ is found out."""

import copy
from collections import deque

import numpy as np
import pytest
import torch

from app_zoo.board.envs import TicTacToe
from app_zoo.classic_control.cartpole.envs import CartPoleEnv
from app_zoo.classic_control.pendulum.envs import PendulumEnv
from nervex.data import Batch
from nervex.envs import Duels
from nervex.policy import batched, check_batched, create_policy
from nervex.policy.dqn import DQNPolicy
from nervex.policy.equivalence import BatchedMismatch
from nervex.policy.tests.toy_envs import AimEnv, PairEnv
from nervex.policy.traj_block import TrajBlock
from nervex.utils import POLICY_REGISTRY, tree
from nervex.worker.actor.env_manager import create_env_manager

EXTRA = {
    'dqn': dict(learn=dict(algo=dict(nstep=3)), collect=dict(algo=dict(nstep=3, first_priority=True))),
    'rainbow_dqn': dict(learn=dict(algo=dict(nstep=3)), collect=dict(algo=dict(nstep=3))),
    'r2d2': dict(collect=dict(env_num=3, unroll_len=5)),
    'ppo_recurrent': dict(collect=dict(env_num=3, unroll_len=4)),
    'impala': dict(collect=dict(env_num=3, unroll_len=4)),
    'alphazero': dict(game='app_zoo.board.envs.search:TIC_TAC_TOE_RULES', collect=dict(search=dict(simulations=8))),
    **{
        name: dict(collect=dict(env_num=3, unroll_len=4))
        for name in ('qmix', 'vdn', 'iql', 'mappo', 'ippo', 'coma', 'collaQ', 'maddpg', 'matd3', 'atoc')
    },
}


def _sizes_of(policy_type):
    return {'collaQ': dict(alone_obs_dim=3)}.get(policy_type, {})


def manager_of(policy_type):
    kinds = POLICY_REGISTRY.get(policy_type).action_kinds
    if kinds and 'team' in kinds:
        manager = create_env_manager('base', PairEnv, [{}] * 3, {})
        manager.seed(0)
        return manager, dict(
            agent_num=2, obs_dim=3, global_obs_dim=6, action_dim=3, lstm_type='gru', **_sizes_of(policy_type)
        )
    if kinds == ('team_continuous',):
        manager = create_env_manager('base', AimEnv, [{}] * 3, {})
        manager.seed(0)
        return manager, dict(n_agent=2, obs_dim=2, action_dim=2)
    if kinds == ('game',):
        manager = create_env_manager('base', Duels(TicTacToe), [{'opponent': 'self'}] * 3, {})
        manager.seed(0)
        return manager, dict(obs_dim=18, action_dim=9)
    env, cfg = (PendulumEnv, {'use_act_scale': True}) if kinds == ('continuous',) else (CartPoleEnv, {})
    manager = create_env_manager('base', env, [cfg] * 3, {})
    manager.seed(0)
    return manager, dict(obs_dim=3, action_dim=1) if env is PendulumEnv else dict(obs_dim=4, action_dim=2)


@pytest.fixture
def env():
    manager, _ = manager_of('dqn')
    with manager:
        manager.launch()
        yield manager


def make(policy_type, cls=None, model=None):
    torch.manual_seed(0)
    model = dict(obs_dim=4, action_dim=2) if model is None else model
    cfg = dict(policy_type=policy_type, model=model, **copy.deepcopy(EXTRA.get(policy_type, {})))
    policy = cls(cfg, enable_field=['collect']) if cls else create_policy(cfg, enable_field=['collect'])
    if 'eps' in policy._collect_setting_set:
        policy.set_setting('collect', {'eps': 0.5})
    return policy


BUILT_IN = [name for name in sorted(POLICY_REGISTRY) if POLICY_REGISTRY.get(name).__module__.startswith('nervex.')]


@pytest.mark.parametrize('policy_type', BUILT_IN)
def test_built_in_policies_agree(policy_type):
    manager, model = manager_of(policy_type)
    with manager:
        manager.launch()
        assert check_batched(make(policy_type, model=model), manager, steps=40) == 120


@pytest.mark.parametrize('policy_type', BUILT_IN)
def test_a_deque_of_rows_gives_the_samples_of_a_block(policy_type):
    """What ``super()._get_train_sample(cache)`` of a row-wise override answers, to the last bit."""
    from nervex.worker.actor.rows import ObsBlock, as_array, in_columns, rows_of

    manager, model = manager_of(policy_type)
    policy = make(policy_type, model=model)
    hooks = in_columns(policy.collect_mode)
    steps, rows = [], deque()
    with manager:
        manager.launch()
        for _ in range(12):
            ids, obs = manager.observe()
            data_id, data = hooks.data_preprocess(ObsBlock(ids, obs))
            output = hooks.data_postprocess(data_id, hooks.forward(data_id, data))
            step = manager.advance(ids, as_array(output['action']))
            made = {**hooks.process_transition(obs, output, step), 'truncated': step.truncated}
            columns = tree.map(np.copy, {name: as_array(value) for name, value in made.items()})
            steps.append(tree.index(columns, 1))
            rows.append(rows_of(columns, step)[1])
    overlap = 0 if steps[-1]['done'] else policy._get_attribute('traj_overlap') or 0
    columns = {k: Batch(v) if isinstance(v, dict) else v for k, v in tree.stack(steps).items()}
    block = policy._get_train_sample(TrajBlock.cut(columns, overlap))
    samples = policy._get_train_sample(rows)
    assert len(rows) == overlap and len(samples) == len(block)
    for name, column in Batch.from_rows(samples).to_numpy().items():
        if name == 'reward':  # (1, ) in a row
            column = column.reshape(block[name].shape)
        for _, a, b in tree.zip(column, block[name]):
            assert a.dtype == b.dtype and np.array_equal(a, b), name


def test_a_policy_whose_forms_differ_is_named_with_its_column(env):
    class Wrong(DQNPolicy):
        @batched
        def _process_transition(self, obs, armor_output, timestep):
            out = dict(super()._process_transition(obs, armor_output, timestep))
            out['reward'] = timestep.reward + float(obs[0].sum())  # row: all of obs; block: the first env's row
            return out

    with pytest.raises(BatchedMismatch, match="column 'reward' differs"):
        check_batched(make('dqn', cls=Wrong), env)


def test_a_policy_whose_forms_differ_in_dtype_is_found_out(env):
    class Wide(DQNPolicy):
        @batched
        def _process_transition(self, obs, armor_output, timestep):
            out = dict(super()._process_transition(obs, armor_output, timestep))
            return {**out, 'done': out['done'] + 0 if isinstance(obs, np.ndarray) else out['done']}

    with pytest.raises(BatchedMismatch, match="'done' differs: it is bool by rows and int"):
        check_batched(make('dqn', cls=Wide), env)
