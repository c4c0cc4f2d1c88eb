import time
import warnings

import gymnasium
import pytest

from app_zoo.classic_control.cartpole.envs import CartPoleEnv
from app_zoo.classic_control.pendulum.envs.pendulum_env import PendulumEnv
from nervex.config import compile_config, read_config, save_config
from nervex.entry.serial_entry import serial_loop
from nervex.policy.suits import TEAMS
from nervex.run.build import start_serial
from nervex.run.defaults import STEP_LIMIT, config_for
from nervex.run.launch import prepare_launch
from nervex.run.tests.own_envs import Pictures, Reach, ReachByNumber, Unbounded, reach
from nervex.utils import POLICY_REGISTRY, ConfigError, UnknownNameError

TAXI = 'Taxi-v4' if 'Taxi-v4' in gymnasium.registry else 'Taxi-v3'  # Gymnasium 1.3 has dropped v3
SINGLE = [n for n in POLICY_REGISTRY.query() if not set(POLICY_REGISTRY.get(n).action_kinds or ()) & set(TEAMS)]


def fits(name, kind):
    kinds = POLICY_REGISTRY.get(name).action_kinds
    return kinds is None or kind in kinds


def run(cfg, tmp_path, *overrides):
    """A few updates."""
    cfg.exp_name = str(tmp_path)
    fewer = ('evaluator.n_episode=1', 'env.evaluator_env_num=1', 'commander.max_train_iter=2', *overrides)
    launch = prepare_launch(cfg, 0, overrides=fewer)
    return launch.carry_out(start_serial, serial_loop, False, False)


@pytest.mark.parametrize('name', SINGLE)
def test_every_policy_for_one_agent_learns_without_a_config(name, tmp_path):
    env = 'CartPole-v1' if fits(name, 'discrete') else 'tic_tac_toe' if fits(name, 'game') else 'Pendulum-v1'
    section = {} if POLICY_REGISTRY.get(name).config.get('on_policy') else dict(learn=dict(init_data_count=64))
    result = run(config_for(name, env, **section), tmp_path)
    assert result.train_iters >= 2 and result.checkpoint


@pytest.mark.parametrize('name', [n for n in SINGLE if fits(n, 'multi_discrete')])
def test_policies_with_several_heads_take_an_env_whose_observations_are_a_dict(name, tmp_path):
    cfg = config_for(name, Reach, learn=dict(init_data_count=32))
    assert cfg.env.flatten_obs
    assert run(cfg, tmp_path).train_iters >= 2


def test_a_policy_that_does_not_suit_the_env_is_refused_in_a_line_that_names_others():
    for policy, env, others in (
        ('sac', 'CartPole-v1', ('dqn', 'sac_discrete')),
        ('dqn', 'Pendulum-v1', ('sac', 'td3')),
    ):
        with pytest.raises(ConfigError) as refused:
            config_for(policy, env)
        (line,) = refused.value.problems
        assert '\n' not in line and all(other in line for other in others)
        assert f'got {policy}' in line


def test_a_policy_without_a_net_for_images_is_refused_and_others_are_named():
    with pytest.raises(ConfigError, match=r'no net for images, \(8, 8, 3\); take one of a2c, impala, ppg'):
        config_for('sac', Pictures)
    cfg = config_for('ppo', Pictures)
    assert cfg.commander.max_env_step > config_for('ppo', Reach).commander.max_env_step
    assert compile_config(cfg).policy.model.model_type == 'conv_vac'


@pytest.mark.parametrize('name', [n for n in POLICY_REGISTRY.query() if fits(n, 'team') and n not in SINGLE])
def test_policies_of_teams_learn_without_a_config(name, tmp_path):
    wants_more = name == 'collaQ'  # observations of each agent alone
    env, section = ('cooperative_navigation', dict(observe_alone=True)) if wants_more else ('two_step', {})
    assert run(config_for(name, env, env=section), tmp_path).train_iters >= 2


def test_unknown_names_are_told_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'ppo'"):
        config_for('pppo', 'CartPole-v1')
    with pytest.raises(UnknownNameError, match="did you mean 'CartPole-v1'"):
        config_for('ppo', 'CartPol-v1')


def test_what_makes_no_env_is_refused():
    with pytest.raises(ConfigError, match='a run makes several'):
        config_for('ppo', Reach())
    with pytest.raises(ConfigError, match=r'none can be made: ZeroDivisionError: .*test_defaults.py:\d+'):
        config_for('ppo', lambda: 1 / 0)
    with pytest.raises(ConfigError, match=r"env_id: got 'Acrobot-v1' beside env.env_fn"):
        config_for('ppo', Reach, env=dict(env_id='Acrobot-v1'))
    with pytest.raises(UnknownNameError, match="did you mean 'connect_four'"):
        config_for('ppo', 'conect_four')
    with pytest.raises(ConfigError, match='needs the argument size'):
        config_for('ppo', lambda size: Reach())


def test_envs_are_named_by_id_type_class_or_function():
    assert config_for('ppo', 'CartPole-v1').env.env_id == 'CartPole-v1'
    assert config_for('ppo', 'cartpole').env.env_type == 'cartpole'
    assert config_for('ppo', Reach).env.env_fn is Reach
    assert config_for('ppo', reach).env.env_fn is reach
    assert config_for('sac', PendulumEnv).env.env_type is PendulumEnv
    here = 'nervex.run.tests.own_envs'
    assert config_for('ppo', f'{here}:Reach').env.env_fn is Reach  # as on the command line
    assert config_for('ppo', f'{here}:reach').env.env_fn is reach
    base = f'{PendulumEnv.__module__}:PendulumEnv'
    assert config_for('sac', base).env.env_type is PendulumEnv


def test_settings_follow_the_spaces():
    box = config_for('ppo', ReachByNumber)
    assert box.env.use_act_scale and box.env.flatten_obs and box.env.manager.norm_obs
    assert 'use_act_scale' not in config_for('ppo', Unbounded).env
    one_hot = config_for('ppo', 'FrozenLake-v1')
    assert 'norm_obs' not in one_hot.env.manager and one_hot.evaluator.stop_val == 0.7
    assert config_for('ppo', 'Pendulum-v1').evaluator.stop_val is None
    assert config_for('ppo', 'FrozenLake-v1', env=dict(make_kwargs=dict(map_name='8x8'))).evaluator.stop_val is None
    assert config_for('dqn', 'CliffWalking-v1').env.max_episode_steps == STEP_LIMIT
    assert 'max_episode_steps' not in config_for('dqn', 'CartPole-v1').env


def test_an_env_of_which_a_process_can_have_one_gets_processes():
    assert config_for('dqn', OneAProcess).env.env_manager_type == 'subprocess'
    given = config_for('dqn', OneAProcess, env=dict(env_manager_type='async_subprocess'))
    assert given.env.env_manager_type == 'async_subprocess'
    assert 'env_manager_type' not in config_for('dqn', CartPoleEnv).env


class OneAProcess(CartPoleEnv):
    one_a_process = True


def test_overrides_name_sections_or_settings_of_the_policy_and_win():
    cfg = config_for('dqn', 'CartPole-v1', learn=dict(learning_rate=3e-4), use_cuda=True, actor=dict(n_sample=16))
    assert cfg.policy.learn.learning_rate == 3e-4 and cfg.policy.learn.batch_size == 64
    assert cfg.policy.use_cuda and cfg.actor.n_sample == 16
    whole = compile_config(config_for('ppo', 'CartPole-v1', actor=dict(n_episode=4)))
    assert whole.actor.n_episode == 4 and whole.actor.n_sample is None
    with pytest.raises(ConfigError, match='learnig_rate'):
        compile_config(config_for('dqn', 'CartPole-v1', learn=dict(learnig_rate=1)))
    with pytest.raises(ConfigError, match='must be a dict'):
        config_for('dqn', 'CartPole-v1', actor=16)


def test_a_longer_run_explores_longer_and_is_evaluated_as_often():
    short, long = (config_for('dqn', 'CartPole-v1', commander=dict(max_env_step=n)) for n in (50_000, 500_000))
    assert long.policy.command.eps.decay == 10 * short.policy.command.eps.decay == 62_500
    assert long.evaluator.eval_freq == 10 * short.evaluator.eval_freq == 25_000
    # 16 rounds of 1024 steps, each with 10 passes of 16 batches: 2560 updates, a twentieth of which is 128
    assert config_for('ppo', 'CartPole-v1', commander=dict(max_env_step=16 * 1024)).evaluator.eval_freq == 128


def test_it_is_a_config_as_any_other(tmp_path):
    cfg = config_for('ppo', 'Pendulum-v1')
    save_config(cfg, tmp_path / 'c.yaml')
    assert compile_config(read_config(tmp_path / 'c.yaml')) == compile_config(cfg)


@pytest.mark.parametrize(
    'policy, env',
    [
        ('dqn', 'FrozenLake-v1'),
        ('dqn', TAXI),
        ('ppo', 'Blackjack-v1'),
        ('dqn', 'CliffWalking-v1'),
        ('ppo', 'CartPole-v1'),
        ('ppo', 'Acrobot-v1'),
        ('dqn', 'MountainCar-v0'),
        ('sac', 'MountainCarContinuous-v0'),
        ('sac', 'Pendulum-v1'),
        ('ppo', 'LunarLander-v3'),
        ('ppo', 'BipedalWalker-v3'),
        ('ppo', 'CarRacing-v3'),
        ('ppo', 'minigrid:MiniGrid-Empty-5x5-v0'),
        ('ppo', ReachByNumber),
        ('ppo', Reach),
    ],
)
def test_any_env_starts_within_seconds(policy, env, tmp_path):
    if env in ('LunarLander-v3', 'BipedalWalker-v3', 'CarRacing-v3'):
        pytest.importorskip('Box2D')
    if isinstance(env, str) and env.startswith('minigrid'):
        pytest.importorskip('minigrid')
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # of Gymnasium, about versions of ids
        cfg = config_for(policy, env)
    cfg.exp_name, cfg.actor.n_sample = str(tmp_path), cfg.env.actor_env_num  # the first step of each env
    with start_serial(prepare_launch(cfg, 0)) as built:
        built.commander.step()
        data, _ = built.actor.generate_data(0)
    assert len(data) and time.process_time() - start < 3.0
