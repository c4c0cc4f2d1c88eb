"""serial_pipeline and eval as a script calls them."""

import copy

import numpy as np
import pytest
import torch

from app_zoo.classic_control.cartpole.envs import CartPoleEnv
from nervex.entry import eval, serial_pipeline
from nervex.policy.dqn import DQNPolicy
from nervex.utils import CheckpointError


def test_runs_twice_with_one_config_object_and_leaves_it_unchanged(short_dqn):
    before = copy.deepcopy(short_dqn)
    first, second = serial_pipeline(short_dqn, seed=0), serial_pipeline(short_dqn, seed=0)
    assert short_dqn == before
    assert first.history == second.history


def test_result_tells_counters_and_paths(short_dqn):
    result = serial_pipeline(short_dqn, seed=7)
    assert result.seed == 7 and not result.solved
    assert result.env_steps == 400 and result.train_iters > 0 and result.episodes > 0
    assert result.final_return <= result.best_return
    assert result.history[-1][1] == result.env_steps


def test_a_missing_seed_is_drawn_and_told(short_dqn):
    first, second = serial_pipeline(short_dqn, seed=None), serial_pipeline(short_dqn, seed=None)
    assert first.seed != second.seed


def test_env_setting_replaces_the_env_section(short_dqn):
    seen = []

    class Env(CartPoleEnv):
        def __init__(self, cfg):
            seen.append(cfg)
            super().__init__(cfg)

    serial_pipeline(short_dqn, env_setting=(Env, [{}] * 2, [{}]))
    assert len(seen) >= 3


@pytest.mark.parametrize('names', [dict(policy_fn=DQNPolicy), dict(policy_type=DQNPolicy)])
def test_a_policy_class_may_be_passed(short_dqn, names):
    short_dqn.policy.pop('policy_type')
    assert serial_pipeline(short_dqn, **names).train_iters > 0


def test_two_spellings_of_one_argument_are_refused(short_dqn):
    with pytest.raises(TypeError, match='policy_fn and policy_type'):
        serial_pipeline(short_dqn, policy_fn=DQNPolicy, policy_type=DQNPolicy)


def test_eval_plays_the_checkpoint(short_dqn):
    result = serial_pipeline(short_dqn)
    played = eval(short_dqn, load_path=result.checkpoint, n_episode=7)
    assert played.returns.shape == played.lengths.shape == (7,)
    assert np.array_equal(played.returns, played.lengths)  # CartPole pays 1 a step


def test_a_run_that_begins_with_a_checkpoint_has_its_own_settings_of_the_optimizer(short_ppo):
    first = serial_pipeline(short_ppo, seed=0)
    short_ppo.learner = dict(load_path=first.checkpoint)
    short_ppo.policy.learn.update(learning_rate=5e-4, optimizer_eps=1e-5)
    second = serial_pipeline(short_ppo, seed=0, overrides=('exp_name=second', 'commander.max_env_step=512'))
    state = torch.load(second.checkpoint)['optimizer']
    assert (state['param_groups'][0]['lr'], state['param_groups'][0]['eps']) == (5e-4, 1e-5)
    assert second.train_iters > first.train_iters and float(state['state'][0]['step']) == second.train_iters


def test_eval_of_a_missing_foreign_or_other_models_checkpoint(short_dqn, tmp_path):
    with pytest.raises(CheckpointError, match='no such checkpoint'):
        eval(short_dqn, load_path='nowhere.pth.tar')
    torch.save({'weights': 1}, 'foreign.pth.tar')
    with pytest.raises(CheckpointError, match='not a nervex checkpoint'):
        eval(short_dqn, load_path='foreign.pth.tar')
    (tmp_path / 'garbage.pth.tar').write_bytes(b'no zip file')
    with pytest.raises(CheckpointError, match='garbage'):
        eval(short_dqn, load_path='garbage.pth.tar')
    result = serial_pipeline(short_dqn)
    short_dqn.policy.model.hidden_dim_list = [32]
    with pytest.raises(CheckpointError, match='another model'):
        eval(short_dqn, load_path=result.checkpoint)
