"""Learning from recorded episodes: imitation, and values that distrust what the data does not show."""

import numpy as np
import pytest

from nervex.data import Batch
from nervex.data.trajectories import TrajectoryDataset, TrajectoryWriter
from nervex.entry import collect, offline_pipeline, serial_pipeline
from nervex.policy.cql import CQLPolicy
from nervex.policy.il import ILPolicy
from nervex.policy.implicit_q import ImplicitQPolicy
from nervex.policy.td3_bc import TD3BCPolicy
from nervex.policy.tests.learning import no_bootstrap, wrong_sign
from nervex.policy.tests.toy_control import DepositEnv, uphill
from nervex.policy.tests.toy_envs import ForbiddenEnv, SwitchesEnv, TemptationEnv, ToyEnv, box, discrete
from nervex.utils import ConfigError
from nervex.utils.class_config import merge_config

CONFIG = dict(
    env={},
    policy=dict(model=dict(hidden_dim_list=[32]), learn=dict(train_step=10, batch_size=32, learning_rate=5e-3)),
    evaluator=dict(n_episode=20, eval_freq=100),
    commander=dict(max_train_iter=400),
)


class ColdEnv(ToyEnv):
    """
    One step, six actions: 0 costs 1, all others cost 2. Data that shows only 0 and 1 does not tell that the others are
    bad, and a network's first guess is better than -1.
    """

    obs_space = box((1,))
    act_space = discrete(6)

    def _begin(self):
        return np.ones(1, np.float32)

    def _act(self, action):
        return np.ones(1, np.float32), -1.0 if int(action) == 0 else -2.0, True


class CliffEnv(ToyEnv):
    """One step: the reward is 1 + action up to 0.3, and -3 behind. Data below 0.2 does not tell of the cliff."""

    obs_space = box((1,))
    act_space = box((1,), -1.0, 1.0)

    def _begin(self):
        return np.ones(1, np.float32)

    def _act(self, action):
        a = float(np.asarray(action).reshape(-1)[0])
        return np.ones(1, np.float32), 1 + a if a <= 0.3 else -3.0, True


def record(folder, env, act, episodes=60):
    env.seed(0)
    rng = np.random.default_rng(0)
    with TrajectoryWriter(str(folder)) as writer:
        for _ in range(episodes):
            obs, rows, done = env.reset(), [], False
            while not done:
                action = np.asarray(act(env, obs, rng))
                step = env.step(action)
                done = step.done
                rows.append(
                    dict(
                        obs=obs,
                        action=action,
                        reward=step.reward,
                        next_obs=step.obs,
                        done=done,
                        truncated=bool(step.info.get('truncated', False)),
                    )
                )
                obs = step.obs
            writer.add(Batch.from_rows(rows))
    return str(folder)


def learn(chosen, env, data, **settings):
    cfg = merge_config(CONFIG, settings)
    if isinstance(chosen, str):
        cfg['policy']['policy_type'], chosen = chosen, None
    return offline_pipeline(cfg, data, env_setting=(env, [{}], [{}] * 4), policy_fn=chosen).final_return


def patient(env, obs, rng):
    return env.ONWARD[int(obs.argmax())]


def any_action(env, obs, rng):
    return rng.integers(2)


def test_imitation_repeats_the_experts_actions(tmp_path):
    data = record(tmp_path / 'data', TemptationEnv(), patient)
    assert learn('il', TemptationEnv, data) == 1
    assert learn(wrong_sign(ILPolicy), TemptationEnv, data) < 0.5


def test_imitation_of_several_heads_and_under_masks(tmp_path):
    data = record(tmp_path / 'heads', SwitchesEnv(), lambda env, obs, rng: divmod(int(obs.argmax()), 3), 200)
    assert learn('il', SwitchesEnv, data) >= 1.9
    data = record(tmp_path / 'masks', ForbiddenEnv(), lambda env, obs, rng: int(np.flatnonzero(obs['action_mask'])[-1]))
    assert learn('il', ForbiddenEnv, data) == 0


def test_conservative_values_learn_from_random_play(tmp_path):
    data = record(tmp_path / 'data', TemptationEnv(), any_action, 600)
    algo = dict(algo=dict(cql_alpha=0.02, target_update_freq=50))
    policy = dict(learn=algo)
    assert learn('cql', TemptationEnv, data, policy=policy, commander=dict(max_train_iter=800)) == 1
    for broken in (wrong_sign, no_bootstrap):
        assert learn(broken(CQLPolicy), TemptationEnv, data, policy=policy) < 0.5


@pytest.mark.parametrize('policy, result', [('cql', -1), ('dqn', -2)])
def test_actions_that_nobody_tried_are_not_trusted(tmp_path, policy, result):
    data = record(tmp_path / 'data', ColdEnv(), any_action)
    assert learn(policy, ColdEnv, data) == result


def cautious(env, obs, rng):
    return rng.uniform(-0.2, 0.2, 1).astype(np.float32)


def test_td3_bc_climbs_as_far_as_the_data_reaches(tmp_path):
    data = record(tmp_path / 'data', CliffEnv(), cautious, 300)
    settings = dict(policy=dict(learn=dict(algo=dict(bc_alpha=0.3))))
    # the best between imitation and Q = 1 + a: 2 (a - 0) = 0.3 / (1 + a) has the solution a = 0.13
    assert learn('td3_bc', CliffEnv, data, **settings) == pytest.approx(1.13, abs=0.05)
    settings['policy']['learn']['algo']['bc_alpha'] = 0.0
    assert learn('td3_bc', CliffEnv, data, **settings) == pytest.approx(1.0, abs=0.03)
    assert learn('td3', CliffEnv, data) == -3
    assert learn(uphill(TD3BCPolicy, '_actor_loss'), CliffEnv, data) <= 0.2


def test_td3_bc_plans_ahead_by_its_critic(tmp_path):
    def anything(env, obs, rng):
        return rng.uniform(-1, 1, 2).astype(np.float32)

    data = record(tmp_path / 'data', DepositEnv(), anything, 600)
    policy = dict(learn=dict(algo=dict(bc_alpha=20.0, target_theta=0.05)))
    settings = dict(policy=policy, commander=dict(max_train_iter=800))
    assert learn('td3_bc', DepositEnv, data, **settings) > 0.8
    assert learn(no_bootstrap(TD3BCPolicy), DepositEnv, data, **settings) < 0.4


#: what implicit Q-learning and CQL need on the problems below
SELECTIVE = dict(
    policy=dict(learn=dict(algo=dict(beta=30.0, expectile=0.9, target_theta=0.05))), commander=dict(max_train_iter=800)
)
DOUBTFUL = dict(policy=dict(learn=dict(algo=dict(cql_alpha=1.0, target_theta=0.05))))


def test_implicit_q_picks_the_best_of_random_play(tmp_path):
    def anything(env, obs, rng):
        return rng.uniform(-1, 1, 2).astype(np.float32)

    data = record(tmp_path / 'data', DepositEnv(), anything, 600)
    assert learn('implicit_q', DepositEnv, data, **SELECTIVE) > 0.8
    assert learn(no_bootstrap(ImplicitQPolicy), DepositEnv, data, **SELECTIVE) < 0.7


def test_conservative_values_of_continuous_actions_stay_near_the_data(tmp_path):
    data = record(tmp_path / 'data', CliffEnv(), cautious, 300)
    assert 1.0 < learn('cql_continuous', CliffEnv, data, **DOUBTFUL) <= 1.3
    assert learn('sac', CliffEnv, data) == -3


def test_nstep_samples_and_priorities_from_files(tmp_path):
    def mostly_patient(env, obs, rng):
        return patient(env, obs, rng) ^ int(rng.random() < 0.2)

    data = record(tmp_path / 'data', TemptationEnv(), mostly_patient, 300)
    policy = dict(use_priority=True, learn=dict(algo=dict(nstep=3, cql_alpha=0.02, target_update_freq=50)))
    assert learn('cql', TemptationEnv, TrajectoryDataset(data), policy=policy) == 1


def test_what_cannot_work_is_told(tmp_path):
    data = record(tmp_path / 'data', TemptationEnv(), patient)
    with pytest.raises(ConfigError, match='max_train_iter: missing'):
        learn('il', TemptationEnv, data, commander=dict(max_train_iter=None))
    with pytest.raises(ConfigError, match='set meta_maxlen to 300'):
        learn('il', TemptationEnv, data, replay_buffer=dict(meta_maxlen=100))
    with pytest.raises(ConfigError, match='use_priority'):
        learn('il', TemptationEnv, data, policy=dict(use_priority=True))


@pytest.mark.slow
@pytest.mark.parametrize('policy', ['il', 'cql'])
def test_cartpole_is_solved_from_the_episodes_of_a_trained_dqn(policy):
    expert = serial_pipeline('cartpole_dqn', seed=0)
    _, written = collect('cartpole_dqn', seed=5, load_path=expert.best_checkpoint, n_episode=20, folder='data')
    assert written == 20
    result = offline_pipeline(f'cartpole_{policy}', 'data')
    assert result.solved and result.env_steps == 0


@pytest.mark.slow
def test_pendulum_is_solved_from_the_episodes_of_a_trained_td3():
    expert = serial_pipeline('pendulum_td3', seed=0)
    _, written = collect('pendulum_td3', seed=5, load_path=expert.best_checkpoint, n_episode=50, folder='data')
    assert written == 50
    result = offline_pipeline('pendulum_td3_bc', 'data')
    assert result.solved and result.env_steps == 0
