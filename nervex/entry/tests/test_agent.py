import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch

import nervex
from app_zoo.classic_control.pendulum.envs.pendulum_env import PendulumEnv
from nervex import Agent
from nervex.entry.eval_entry import trained_evaluator
from nervex.run.launch import Passed, prepare_launch
from nervex.run.tests.own_envs import Reach, ReachByNumber, reach
from nervex.utils import ConfigError, NothingThereError, UnknownNameError
from nervex.utils.tests import quick_start
from nervex.utils.trust import UntrustedError

ROOT = Path(nervex.__file__).parents[1]
DQN = dict(learn=dict(init_data_count=64, batch_size=16), evaluator=dict(n_episode=2))
PPO = dict(actor=dict(n_sample=128), evaluator=dict(n_episode=2))
SAC = dict(learn=dict(init_data_count=64, batch_size=16), collect=dict(random_steps=64), evaluator=dict(n_episode=2))
R2D2 = dict(learn=dict(init_data_count=8, batch_size=4), evaluator=dict(n_episode=2))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def raw_blocks(agent):
    """
    Play an evaluation; answers, step by step, the observations as the Gym objects gave them, of all envs, and the
    actions that these got.
    """
    seen = []

    class Watched(gymnasium.Wrapper):
        def reset(self, **kwargs):
            obs, info = self.env.reset(**kwargs)
            self.now = obs
            return obs, info

        def step(self, action):
            seen.append((self.now, action))
            answer = self.env.step(action)
            self.now = answer[0]
            return answer

    config = agent.config.copy()
    cfg = prepare_launch(
        {**config, 'env': {**config['env'], 'wrappers': [Watched], 'evaluator_env_num': 1}},
        agent.seed,
        load_path=agent.checkpoint,
        collects=False,
    ).cfg
    with trained_evaluator(cfg, agent.seed, Passed()) as evaluator:
        evaluator.evaluate(1)
    return seen


@pytest.mark.parametrize(
    'policy, env, given',
    [
        ('dqn', 'CartPole-v1', DQN),
        ('dqn', 'FrozenLake-v1', DQN),  # one number, encoded as one-hot vector
        ('ppo', 'Blackjack-v1', PPO),  # a tuple
        ('ppo', 'CartPole-v1', PPO),  # scaled observations
        ('ppo', 'Pendulum-v1', PPO),  # and a continuous action within other bounds
        ('sac', 'Pendulum-v1', SAC),
        ('sac', ReachByNumber, SAC),  # bounds beside 0
        ('dqn', Reach, DQN),  # a dict, and several heads
        ('ppo', Reach, PPO),
        ('r2d2', 'CartPole-v1', R2D2),  # a memory
        ('ppo_recurrent', 'Pendulum-v1', dict(actor=dict(n_sample=8), evaluator=dict(n_episode=2))),
        ('rainbow_dqn', 'CartPole-v1', DQN),
    ],
)
def test_it_predicts_what_the_evaluator_does_bit_for_bit(policy, env, given):
    agent = Agent(policy, env, **given)
    agent.learn(300, progress=False)
    assert agent.checkpoint and agent.steps >= 300
    torch.manual_seed(0)
    seen = raw_blocks(agent)
    assert len(seen) > 1 or env == 'Blackjack-v1'
    fresh = Agent.load(agent.folder, env=env if isinstance(env, type) else None)
    torch.manual_seed(0)
    for obs, action in seen:
        mine = fresh.predict(obs)
        assert np.array_equal(mine, action), (obs, mine, action)
        assert np.asarray(mine).dtype == np.asarray(action).dtype


def test_a_batch_is_answered_row_by_row_and_may_be_a_list():
    for policy, env in (('ppo', 'Pendulum-v1'), ('dqn', 'FrozenLake-v1'), ('ppo', 'Blackjack-v1'), ('dqn', Reach)):
        make = partial(gymnasium.make, env) if isinstance(env, str) else env
        agent, vector = Agent(policy, env), gymnasium.vector.SyncVectorEnv([make] * 3)
        obs, _ = vector.reset(seed=1)
        actions = agent.predict(obs)
        assert len(actions) == 3
        vector.step(actions)
        rows = [{k: v[i] for k, v in obs.items()} for i in range(3)] if isinstance(obs, dict) else None
        if rows is not None:
            assert np.array_equal(agent.predict(rows), actions)
            assert np.array_equal(agent.predict(rows[0]), actions[0])


@pytest.mark.parametrize(
    'env, obs, said',
    [
        ('CartPole-v1', np.zeros((2, 3, 4)), r'the shape \(2, 3, 4\)'),
        ('CartPole-v1', np.zeros(3), r'the shape \(3,\)\), must be one observation of Box'),
        ('CartPole-v1', np.zeros((0, 4)), 'an empty batch'),
        ('CartPole-v1', (np.zeros(4), {}), r'reset\(\) answers a pair'),
        ('CartPole-v1', 'x', r'str \(the shape'),
        ('FrozenLake-v1', 16, r'int \(16\), must be one observation of Discrete'),
        ('FrozenLake-v1', 3.5, r'\(3.5\), must be one observation of Discrete'),
        (Reach, {'at': np.zeros(1)}, "'goal'.*must be one observation of Dict"),
        (Reach, {'at': np.zeros((2, 1)), 'goal': np.zeros((3, 1)), 'side': 0}, 'batches of different lengths'),
        (Reach, 3, 'must be one observation of Dict'),
        (Reach, [], 'an empty batch'),
        (Reach, [3], 'must be one observation of Dict'),
    ],
)
def test_observations_that_are_none_of_the_env_are_refused_and_leave_the_agent_as_it_was(env, obs, said):
    agent = Agent('ppo', env)
    with pytest.raises(ValueError, match='obs: got.*' + said):
        agent.predict(obs)
    space = (gymnasium.make(env) if isinstance(env, str) else env()).observation_space
    agent.predict(space.sample())


def test_a_memory_is_kept_between_calls_and_forgotten_by_reset():
    agent, obs = Agent('r2d2', 'CartPole-v1'), np.array([0.1, 0.2, 0.3, 0.4], np.float32)

    def remembered():
        agent.predict(obs)
        return agent._acting._memory[0]

    first, second = remembered(), remembered()
    assert not torch.equal(first[0], second[0])
    agent.reset()
    assert torch.equal(remembered()[0], first[0])
    assert len(agent.predict(np.stack([obs] * 70))) == 70  # more rows than the run had envs


def test_exploring_draws_and_the_usual_does_not():
    agent, obs = Agent('ppo', 'Pendulum-v1'), np.array([1.0, 0.0, 0.0], np.float32)
    assert len({float(agent.predict(obs)[0]) for _ in range(4)}) == 1
    drawn = [float(agent.predict(obs, deterministic=False)[0]) for _ in range(20)]
    assert len(set(drawn)) > 5 and max(map(abs, drawn)) <= 2.0
    agent = Agent('dqn', 'CartPole-v1')
    explored = {agent.predict(np.zeros(4), deterministic=False) for _ in range(20)}
    assert explored == {0, 1}


def test_predicting_leaves_the_random_state_alone():
    torch.manual_seed(1)
    drawn = torch.rand(3)
    torch.manual_seed(1)
    Agent('ppo', 'CartPole-v1').predict(np.zeros(4))
    assert torch.equal(torch.rand(3), drawn)


def test_before_it_has_learned_it_plays_as_a_run_begins():
    agent = Agent('ppo', 'CartPole-v1', **PPO)
    played = agent.evaluate(2)
    result = agent.learn(128, progress=False)
    assert result.history[0][2] == played.mean
    for refused in (Agent('ppo', 'CartPole-v1').save, Agent('ppo', 'CartPole-v1').record):
        with pytest.raises(NothingThereError, match='not learned anything yet'):
            refused('x.mp4')
    with pytest.raises(NothingThereError, match='not evaluated'):
        Agent('ppo', 'CartPole-v1').curve()


def test_learning_twice_goes_on_where_the_first_ended():
    once, twice = (Agent('dqn', 'CartPole-v1', **DQN, command=dict(eps=dict(decay=1000))) for _ in range(2))
    for agent in (once, twice):
        agent._made_of[2]['evaluator'] = dict(n_episode=2, eval_freq=100)
    once.learn(400, progress=False)
    twice.learn(200, progress=False)
    first = twice.folder
    result = twice.learn(200, progress=False)
    assert twice.folder == first and once.folder == f'{first}'.replace('_s0_2', '_s0')
    assert once.steps == twice.steps == result.env_steps == 400
    a, b = (
        torch.load(f'{folder}/{name}')
        for folder, name in ((os.path.dirname(x.checkpoint), 'ckpt_last.pth.tar') for x in (once, twice))
    )
    for name in a['model']:
        assert torch.equal(a['model'][name], b['model'][name])
    assert twice.curve()['env_step'][-1] == 400


def test_a_solved_run_learns_on_to_the_end_of_more_steps():
    agent = Agent('ppo', 'CartPole-v1', actor=dict(n_sample=128), evaluator=dict(stop_val=5, n_episode=2, eval_freq=1))
    assert agent.learn(2000, progress=False).solved
    before = agent.steps
    assert agent.learn(256, progress=False).env_steps == before + 256


def test_learning_again_from_a_folder_goes_on_there_and_from_a_file_begins_anew():
    agent = Agent('ppo', 'CartPole-v1', **PPO)
    agent.learn(128, progress=False)
    again = Agent.load(agent.folder)
    assert again.learn(128, progress=False).env_steps == 256 and again.folder == agent.folder
    lone = Agent.load(agent.save('kept/a.pth.tar'))
    assert lone.folder is None and lone.predict(np.zeros(4)) == agent.predict(np.zeros(4))
    assert lone.learn(128, progress=False).env_steps == 128 and lone.folder != agent.folder
    of_the_run = Agent.load(agent.checkpoint)
    assert of_the_run.folder is None and of_the_run.checkpoint == agent.checkpoint


def test_ctrl_c_saves_the_run_and_leaves_an_agent_that_goes_on():
    agent = Agent('ppo', 'CartPole-v1', **PPO)

    def interrupt():
        while not (Path('runs').exists() and list(Path('runs').rglob('curve.csv'))):
            time.sleep(0.01)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        agent.learn(10_000_000, progress=False)
    thread.join()
    stopped = agent.steps
    assert stopped > 0 and agent.checkpoint and agent.predict(np.zeros(4)) in (0, 1)
    assert agent.learn(128, progress=False).env_steps == stopped + 128


def test_looking_at_the_env_first_changes_nothing(capsys):
    first, second = (Agent('dqn', 'CartPole-v1', **DQN).learn(200, progress=shown) for shown in (True, False))
    assert first.history == second.history and first.seed == second.seed
    assert 'finished: return' in capsys.readouterr().out


def test_it_learns_in_a_thread():
    agent, found = Agent('ppo', 'CartPole-v1', **PPO), []
    thread = threading.Thread(target=lambda: found.append(agent.learn(128, progress=False)))
    thread.start()
    thread.join()
    assert found[0].env_steps == 128


def test_refusals():
    with pytest.raises(ConfigError, match=r"Agent\('ppo', 'CartPole-v1'\)"):
        Agent('ppo')
    with pytest.raises(UnknownNameError, match="did you mean 'ppo'"):
        Agent('ppoo', 'CartPole-v1')
    with pytest.raises(ConfigError, match='take one of'):
        Agent('sac', 'CartPole-v1')
    with pytest.raises(ConfigError, match="learnig_rate: unknown setting; did you mean 'learning_rate'"):
        Agent('dqn', 'CartPole-v1', learn=dict(learnig_rate=1))
    with pytest.raises(ConfigError, match=r'policy\.learn\.batch_size: got'):
        Agent('ppo', 'CartPole-v1', learn=dict(batch_size='large'))
    with pytest.raises(ConfigError, match='unknown config'):
        Agent('nothing_of_this_name')
    with pytest.raises(NothingThereError):
        Agent.load('nowhere')
    with pytest.raises(ConfigError, match='serial_pipeline trains them'):
        Agent('rock_paper_scissors_league').learn(100)
    for seed in ('a', -1, 1.5):
        with pytest.raises(ValueError, match='seed: got'):
            Agent('ppo', 'CartPole-v1', seed=seed)
    with pytest.raises(ConfigError, match='policy: got 3'):
        Agent(3, 'CartPole-v1')
    for steps in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match='steps: got'):
            Agent('ppo', 'CartPole-v1').learn(steps)
    with pytest.raises(ValueError, match=r'must end in \.mp4 or \.gif'):
        Agent('ppo', 'CartPole-v1').record('film.avi')


def test_a_config_may_be_given_with_another_env_and_other_settings(caplog):
    agent = Agent('cartpole_ppo', learn=dict(learning_rate=1e-5))
    assert agent.config.env.env_type == 'cartpole' and agent.config.policy.learn.learning_rate == 1e-5
    other = Agent(agent.config, env='Acrobot-v1')
    assert other.config.env.env_id == 'Acrobot-v1' and other.config.policy.learn.learning_rate == 1e-5
    assert other.predict(np.zeros(6)) in (0, 1, 2)
    assert 'evaluator.stop_val: 195 of the config was meant for cartpole; for Acrobot-v1 give one' in caplog.text
    caplog.clear()
    Agent(agent.config, env='Acrobot-v1', evaluator=dict(stop_val=-90))
    assert 'meant for' not in caplog.text
    assert agent.config.env.env_type == 'cartpole'


@pytest.mark.parametrize('env', [reach, Reach, PendulumEnv])
def test_envs_of_ones_own_are_loaded_with_the_run(env):
    policy, given = ('ppo', PPO) if env is not PendulumEnv else ('sac', SAC)
    agent = Agent(policy, env, **given)
    agent.learn(128, progress=False)
    assert Agent.load(agent.folder).evaluate(1).mean == agent.evaluate(1).mean
    lone = agent.save('lone.pth.tar')
    with pytest.raises(UntrustedError, match='trust=True'):
        Agent.load(lone)
    assert Agent.load(lone, trust=True).evaluate(1).mean == Agent.load(lone, env=env).evaluate(1).mean


def test_a_function_without_a_name_is_given_again(tmp_path):
    agent = Agent('ppo', lambda: Reach(), **PPO)
    agent.learn(128, progress=False)
    again = Agent.load(agent.folder, env=reach)
    assert again.evaluate(1).mean == agent.evaluate(1).mean
    assert again.learn(128, progress=False).env_steps == 256


def test_it_records_the_best_episode():
    pytest.importorskip('pygame')
    agent = Agent('ppo', 'CartPole-v1', **PPO)
    agent.learn(128, progress=False)
    path = agent.record('films/best.gif')
    assert path == 'films/best.gif' and Path(path).read_bytes().startswith(b'GIF')


def test_it_says_in_words_what_it_is(capsys):
    agent = Agent('ppo', 'CartPole-v1', **PPO)
    assert repr(agent) == 'Agent(env: CartPole-v1, policy: ppo, learned: nothing yet)'
    agent.learn(128)
    assert 'best return' in repr(agent) and '<td>128 env steps' in agent._repr_html_()
    shown = capsys.readouterr().out
    assert 'CartPole-v1 by ppo' in shown and 'env steps 128' in shown


def test_a_script_without_a_main_guard_works_with_envs_in_processes(tmp_path):
    script = tmp_path / 'script.py'
    script.write_text(
        'from nervex import Agent\n'
        'from nervex.run.defaults import config_for\n'
        "config = config_for('ppo', 'CartPole-v1', env=dict(env_manager_type='sync_subprocess', actor_env_num=2),\n"
        '                    actor=dict(n_sample=64), evaluator=dict(n_episode=2))\n'
        'agent = Agent(config)\n'
        'print(agent.learn(64, progress=False).env_steps)\n'
    )
    env = {**os.environ, 'PYTHONPATH': str(ROOT)}
    out = quick_start.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=env, cwd=tmp_path, timeout=60
    )
    assert out.returncode == 0 and out.stdout.strip() == '64', out.stderr
