"""The declarations of the framework's own classes, and documented configs of several dialects on top of them."""

import pytest

from nervex.config import ConfigError, builtin_configs, compile_config, read_config, save_config
from nervex.config.tree import get_path, plain_copy, pop_path, set_path
from nervex.loader.sections import check_of
from nervex.model import FCDiscreteNet
from nervex.policy import create_policy
from nervex.utils import ENV_REGISTRY, POLICY_REGISTRY
from nervex.utils.declare import declared_by

DOCUMENTED = dict(
    env=dict(
        env_manager_type='base',
        manager=dict(shared_memory=True),
        import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
        env_type='cartpole',
        actor_env_num=8,
        evaluator_env_num=5,
    ),
    policy=dict(
        use_cuda=False,
        policy_type='dqn',
        import_names=['nervex.policy.dqn'],
        on_policy=False,
        model=dict(obs_dim=4, action_dim=2, embedding_dim=64, dueling=True),
        learn=dict(
            train_step=3,
            batch_size=64,
            learning_rate=0.001,
            weight_decay=0.0,
            algo=dict(target_update_freq=100, discount_factor=0.97, nstep=1),
        ),
        collect=dict(traj_len=1, unroll_len=1, algo=dict(nstep=1)),
        command=dict(eps=dict(type='exp', start=0.95, end=0.1, decay=10000)),
    ),
    replay_buffer=dict(buffer_name=['agent'], agent=dict(meta_maxlen=100000, max_reuse=100, min_sample_ratio=1)),
    actor=dict(n_sample=8, traj_len=1, traj_print_freq=100, collect_print_freq=100),
    evaluator=dict(n_episode=5, eval_freq=200, stop_val=195),
    learner=dict(
        load_path='',
        hook=dict(
            save_ckpt_after_iter=dict(
                name='save_ckpt_after_iter',
                type='save_ckpt',
                priority=20,
                position='after_iter',
                ext_args=dict(freq=100),
            ),
            log_show=dict(
                name='log_show', type='log_show', priority=20, position='after_iter', ext_args=dict(freq=100)
            ),
        ),
    ),
    commander=dict(),
)


@pytest.mark.parametrize('name', builtin_configs())
def test_every_built_in_config_resolves_and_survives_a_file(name, tmp_path):
    if name.startswith('minigrid'):
        pytest.importorskip('minigrid')  # it names a wrapper of that package
    resolved = compile_config(name)
    save_config(resolved, tmp_path / 'resolved.yaml')
    assert compile_config(tmp_path / 'resolved.yaml') == resolved


@pytest.mark.parametrize('registry', [POLICY_REGISTRY, ENV_REGISTRY], ids=lambda registry: registry.what)
def test_every_built_in_class_declares_its_own_settings(registry):
    """A class without declarations of its own would leave its section open, so that misspelt settings pass."""
    for name, where in registry.query_details().items():
        if where.startswith(('nervex.', 'app_zoo.')) and '.tests.' not in where:
            assert 'config' in vars(registry.get(name)), name


def test_the_documented_config_resolves_to_what_it_says():
    resolved = compile_config(DOCUMENTED)

    def says(given, got, path=''):
        for key, value in given.items():
            if isinstance(value, dict):
                says(value, got[key], f'{path}{key}.')
            else:
                assert got[key] == value, path + key

    says(DOCUMENTED, resolved)


@pytest.mark.parametrize(
    'path',
    [
        'env.mangaer.step_timeout=3',
        'env.manager.step_timout=3',
        'env.max_episode_stps=3',
        'policy.use_cda=1',
        'policy.learn.algo.duoble_q=1',
        'policy.collect.unrol_len=2',
        'policy.command.eps.decy=3',
        'policy.model.obs_dm=3',
        'replay_buffer.agent.alhpa=0.5',
        'replay_buffer.agent.monitor.log_frq=3',
        'actor.traj_print_frq=1',
        'evaluator.evl_freq=2',
        'learner.log_windw=2',
        'commander.max_trian_iter=3',
    ],
)
def test_no_section_of_the_framework_is_open(path):
    with pytest.raises(ConfigError, match='unknown setting; did you mean'):
        compile_config(DOCUMENTED, overrides=[path])


def test_ppo_takes_the_documented_place_of_its_gae_settings():
    config = read_config('cartpole_ppo')
    config.policy.learn.algo.pop('gae_lambda')
    config.policy.collect = dict(unroll_len=1, algo=dict(discount_factor=0.98, gae_lambda=0.7))
    resolved = compile_config(config)
    assert resolved.policy.learn.algo.gae_lambda == 0.7 and 'gae_lambda' not in resolved.policy.collect.algo
    config.policy.collect.algo.discount_factor = 0.5
    with pytest.raises(ConfigError, match=r'policy.collect.algo.discount_factor: got 0.5, but'):
        compile_config(config)


def test_a_manager_may_wait_for_parts_of_a_second():
    assert compile_config(DOCUMENTED, overrides=['env.manager.step_timeout=0.5']).env.manager.step_timeout == 0.5
    assert compile_config(DOCUMENTED, overrides=['env.manager.timeout=0.5']).env.manager.step_wait_timeout == 0.5
    with pytest.raises(ConfigError, match=r'env.manager.context: got .spwn., must be one of .*; did you mean .spawn.'):
        compile_config(DOCUMENTED, overrides=['env.manager.context=spwn'])


def test_defaults_can_be_read_as_the_sections_that_they_fill():
    from nervex.config.buffer_manager import buffer_manager_default_config
    from nervex.config.serial import base_learner_default_config

    assert buffer_manager_default_config.replay_buffer.armor.meta_maxlen == 4096
    assert base_learner_default_config.load_path == ''
    with pytest.raises(AttributeError, match='has no attribute'):
        from nervex.config import serial

        _ = serial.nothing


@pytest.mark.parametrize('given, known', [(dict(frq=5), 'freq'), (dict(freq=5, load_pth='x'), 'freq')])
def test_what_a_hook_of_the_framework_does_not_take_is_named(given, known):
    hook = dict(log_show=dict(ext_args=given))
    with pytest.raises(
        ConfigError, match=rf'log_show.ext_args.{list(given)[-1]}: unknown setting; .*accepts here: {known}'
    ):
        compile_config({**read_config('cartpole_dqn'), 'learner': dict(hook=hook)})


def test_an_id_for_an_env_that_has_none_is_an_error_that_names_the_way():
    with pytest.raises(ConfigError, match=r"env.env_id: got 'LunarLander-v3', but CartPoleEnv .*env_type: gym"):
        compile_config('cartpole_dqn', overrides=['env.env_id=LunarLander-v3'])
    gym = compile_config('cartpole_dqn', overrides=['env.env_type=gym', 'env.env_id=LunarLander-v3'])
    assert gym.env.env_id == 'LunarLander-v3'


@pytest.mark.parametrize('more', [[], ['env.env_type=pettingzoo']])
def test_the_module_of_a_pettingzoo_env_may_stand_for_any_env_of_a_team(more):
    pytest.importorskip('mpe2', reason='pip install "nervex[mpe]"')
    overrides = [*more, 'env.env_id=mpe2.simple_speaker_listener_v4', 'env.make_kwargs.max_cycles=10']
    found = compile_config('cooperative_navigation_mappo', overrides=overrides)
    assert found.env.env_type == 'pettingzoo' and found.env.make_kwargs == {'max_cycles': 10}
    assert found.env.env_manager_type == 'base'  # for the config's own env it is 'vector', which this one is not
    given = compile_config('cooperative_navigation_mappo', overrides=[*overrides, 'env.env_manager_type=subprocess'])
    assert given.env.env_manager_type == 'subprocess'
    sizes = found.policy.model
    assert (sizes.agent_num, sizes.obs_dim, sizes.global_obs_dim, sizes.action_dim) == (2, 11, 14, 5)


def test_a_saved_config_with_the_empty_id_of_earlier_versions_is_still_one():
    assert 'env_id' not in compile_config({**DOCUMENTED, 'env': {**DOCUMENTED['env'], 'env_id': None}}).env


def test_limits_of_a_run_may_be_written_1e5_and_left_out():
    for text, value in (('1e5', 100_000), ('200000.0', 200_000), ('null', None)):
        for key in ('max_env_step', 'max_train_iter'):
            found = compile_config('cartpole_dqn', overrides=[f'commander.{key}={text}']).commander[key]
            assert found == value and type(found) is type(value)
    with pytest.raises(ConfigError, match=r'commander.max_env_step: got 1.5, must be an int >= 1 or None'):
        compile_config('cartpole_dqn', overrides=['commander.max_env_step=1.5'])


class Shaped:
    """A wrapper of one's own."""

    def __init__(self, env, scale=1.0):
        self.env, self.scale = env, scale


def test_classes_and_functions_in_a_config_come_back_from_a_file(tmp_path):
    env = dict(env_type='gym', env_fn=Shaped, wrappers=['time_limit', dict(type=Shaped, scale=2)])
    resolved = compile_config({**DOCUMENTED, 'env': env})
    save_config(resolved, tmp_path / 'resolved.yaml')
    again = compile_config(tmp_path / 'resolved.yaml')
    assert again.env.env_fn is Shaped and again.env.wrappers[1] == dict(type=f'{__name__}:Shaped', scale=2)
    with pytest.raises(ConfigError, match=r"env.env_fn: got 'no_such:name', must be .*'module:function'"):
        compile_config({**DOCUMENTED, 'env': dict(env_type='gym', env_fn='no_such:name')})


def test_an_unknown_wrapper_is_named_before_the_run():
    with pytest.raises(ConfigError, match=r"env.wrappers: unknown env wrapper 'atarii'; did you mean 'atari'"):
        compile_config('lunarlander_dqn', overrides=['env.wrappers=[atarii]'])


@pytest.mark.parametrize(
    'name, path, value',
    [
        ('cartpole_ppo', 'policy.learn.algo.entropy_weight', 'x'),
        ('cartpole_ppo', 'policy.learn.algo.entropy_weight', '.inf'),
        ('pendulum_sac', 'policy.learn.algo.target_entropy', 'auto'),
        ('cartpole_dqn', 'policy.learn.weight_decay', '.nan'),
        ('cartpole_dqn', 'evaluator.stop_val', 'high'),
        ('cartpole_dqn', 'policy.command.eps_spread', 'wide'),
        ('cartpole_dqn', 'env.manager.norm_clip', 'x'),
        ('cartpole_dqn', 'env.max_episode_steps', '0'),
        ('cartpole_dqn', 'learner.import_names', '3'),
        ('cartpole_ppo', 'policy.command.eps', '{start: 0.5}'),  # PPO does not explore so
        ('cartpole_ppo', 'policy.collect.algo.nstep', '3'),
    ],
)
def test_values_and_keys_that_nothing_could_use_are_refused(name, path, value):
    with pytest.raises(ConfigError, match=path):
        compile_config(name, overrides=[f'{path}={value}'])


@pytest.mark.parametrize('name', POLICY_REGISTRY.query_details())
def test_every_setting_of_a_policy_has_a_check_and_a_meaning(name):
    for path, entry in declared_by(POLICY_REGISTRY.get(name)).leaves():
        bare = [] if path.startswith('model.') or path == 'policy_type' else [entry]
        assert all(e.check is not None and (e.meaning or e.same_as) for e in bare), path
        loader = check_of(entry)
        assert loader is None or loader.check(entry.default), f'{path}: the default does not fit'


def test_an_exploration_that_grows_is_refused():
    with pytest.raises(ConfigError, match=r'policy.command.eps.start: got 0.1, must be at least .*end = 0.5'):
        compile_config('cartpole_dqn', overrides=['policy.command.eps.start=0.1', 'policy.command.eps.end=0.5'])


@pytest.mark.parametrize(
    'name', ['cartpole_dqn', 'cartpole_ppo_recurrent', 'pendulum_ppo', 'pendulum_sac', 'bitflip_her_dqn']
)
def test_a_policy_is_made_of_a_compiled_and_of_a_saved_config(name, tmp_path):
    resolved = compile_config(name)
    save_config(resolved, tmp_path / 'config.yaml')
    made = create_policy(resolved.policy, enable_field=['eval'])
    again = create_policy(compile_config(tmp_path / 'config.yaml').policy, enable_field=['eval'])
    shapes = [[tuple(p.shape) for p in policy._model.parameters()] for policy in (made, again)]
    assert shapes[0] == shapes[1] and shapes[0]


def test_where_the_env_cannot_be_asked_the_error_says_what_to_do():
    raw = read_config('cartpole_dqn')
    with pytest.raises(
        ConfigError, match=r"missing a required argument: 'obs_dim'.*compile_config\(cfg\) asks the env"
    ):
        create_policy(raw.policy)
    with pytest.raises(ConfigError, match=r"model 'FCDiscreteNet': missing a required argument: 'obs_dim'"):
        create_policy(raw.policy, model=FCDiscreteNet)
    raw.env = dict(env_type='gym', env_id='CartPole-v1', wrappers=[dict(type='time_limit', max_steps=0.5)])
    assert 'obs_dim' not in compile_config(raw).policy.model


def older(policy_type, env_type='cartpole', buffer=None, env=None, actor=None, evaluator=None, **policy):
    """A config of the older dialect, around its policy's section."""
    name = 'classic_control.' + env_type
    return dict(
        env=dict(
            env_manager_type='base',
            import_names=[f'app_zoo.{name}.envs.{env_type}_env'],
            env_type=env_type,
            actor_env_num=8,
            evaluator_env_num=5,
            **(env or {}),
        ),
        policy=dict(use_cuda=False, policy_type=policy_type, **policy),
        replay_buffer=buffer or dict(buffer_name=['agent'], agent=dict(replay_buffer_size=100000, max_use=100)),
        actor=dict(collect_print_freq=100, **(actor or dict(n_sample=16, traj_len=1))),
        evaluator=evaluator or dict(n_episode=5, eval_freq=200, stop_val=195),
        learner=dict(load_path='', hook=dict()),
        commander=dict(),
    )


_CARTPOLE = dict(obs_dim=4, action_dim=2, embedding_dim=64)
_PENDULUM = dict(obs_dim=3, action_dim=1)
_EPS = dict(eps=dict(type='exp', start=0.95, end=0.1, decay=10000))
OLDER = {
    'a2c': (
        older(
            'a2c',
            on_policy=True,
            model=_CARTPOLE,
            learn=dict(train_step=5, algo=dict(use_adv_norm=True, value_weight=0.5, entropy_weight=0.01)),
            collect=dict(traj_len='inf', unroll_len=1, algo=dict(discount_factor=0.9, gae_lambda=0.95)),
            command={},
            actor=dict(n_sample=128, traj_len=200),
        ),
        {'policy.learn.algo.adv_norm': True, 'policy.collect.traj_len': 200, 'actor.traj_len': 200},
    ),
    'impala': (
        older(
            'impala',
            model=_CARTPOLE,
            learn=dict(train_step=5, algo=dict(discount_factor=0.9, lambda_=0.95, rho_clip_ratio=1.0)),
            collect=dict(traj_len='inf', unroll_len=64),
            actor=dict(n_sample=16, traj_len=128),
        ),
        {'policy.learn.algo.gae_lambda': 0.95, 'policy.collect.traj_len': 128},
    ),
    'r2d2': (
        older(
            'r2d2',
            use_priority=False,
            model=_CARTPOLE,
            learn=dict(train_step=3, algo=dict(target_update_freq=200, use_value_rescale=True, nstep=2)),
            collect=dict(traj_len=14, unroll_len=6, env_num=8, algo=dict(nstep=2, burnin_step=3)),
            eval=dict(env_num=5),
            command=_EPS,
            actor=dict(n_sample=32, traj_len=14),
        ),
        {'policy.learn.algo.value_rescale': True, 'policy.learn.algo.burnin_step': 3},
    ),
    'rainbow_iqn': (
        older(
            'rainbow',
            model=dict(**_CARTPOLE, num_quantiles=32, quantile_embedding_dim=128, beta_function_type='CPW'),
            learn=dict(algo=dict(use_iqn=True, tau_num=9, tau_prim_num=10, quantile_num=8, kappa=1.0, nstep=3)),
            collect=dict(traj_len=11, unroll_len=1, algo=dict(nstep=3)),
            command=_EPS,
            actor=dict(n_sample=80, traj_len=11),
        ),
        {
            'policy.policy_type': 'rainbow_dqn',
            'policy.use_iqn': True,
            'policy.learn.algo.tau': 9,
            'policy.learn.algo.tau_prim': 10,
        },
    ),
    'iqn': (older('iqn', command=_EPS), {'policy.policy_type': 'rainbow_dqn', 'policy.use_iqn': True}),
    'c51': (older('c51', command=_EPS), {'policy.policy_type': 'rainbow_dqn', 'policy.use_iqn': False}),
    'td3': (
        older(
            'td3',
            'pendulum',
            model=_PENDULUM,
            env=dict(norm_obs=dict(use_norm=False), norm_reward=dict(use_norm=False), use_act_scale=True),
            learn=dict(
                learning_rate_actor=1e-3,
                learning_rate_critic=2e-3,
                ignore_done=True,
                algo=dict(use_twin_critic=True, use_noise=True, noise_sigma=0.3, noise_range=dict(min=-0.4, max=0.4)),
            ),
            collect=dict(traj_len=1, unroll_len=1, algo=dict(noise_sigma=0.15)),
            command={},
            buffer=dict(sample_ratio=2, thruput_controller=dict(window_seconds=30)),
        ),
        {
            'env.manager.norm_obs': False,
            'policy.model.use_twin_critic': True,
            'policy.learn.algo.target_noise_sigma': 0.3,
            'policy.learn.algo.target_noise_clip': 0.4,
            'policy.collect.noise_sigma': 0.15,
            'replay_buffer.armor.min_sample_ratio': 2,
        },
    ),
    'ddpg': (
        older(
            'ddpg',
            'pendulum',
            model=_PENDULUM,
            learn=dict(algo=dict(use_twin_critic=False, use_noise=False, noise_sigma=0.2)),
        ),
        {'policy.learn.algo.target_noise_sigma': 0.0, 'policy.model.use_twin_critic': False},
    ),
    'sac': (
        older(
            'sac',
            'pendulum',
            model=dict(**_PENDULUM, use_twin_q=True),
            learn=dict(
                learning_rate_q=3e-4,
                learning_rate_value=3e-4,
                learning_rate_policy=4e-4,
                algo=dict(
                    alpha=0.2,
                    is_auto_alpha=False,
                    use_twin_q=True,
                    reparameterization=True,
                    policy_mean_reg_weight=0.001,
                    policy_std_reg_weight=0.001,
                ),
            ),
            buffer=dict(
                buffer_name=['agent'],
                agent=dict(thruput_controller=dict(sample_min_limit_ratio=3, push_sample_rate_limit=dict(min=0))),
            ),
        ),
        {
            'policy.learn.algo.auto_alpha': False,
            'policy.learn.learning_rate_critic': 3e-4,
            'policy.learn.learning_rate_actor': 4e-4,
            'policy.model.use_twin_q': True,
            'replay_buffer.agent.min_sample_ratio': 3,
        },
    ),
    'ppo_continuous': (
        older('ppo', 'pendulum', model=dict(**_PENDULUM, fixed_sigma_value=0.3)),
        {'policy.model.sigma': 0.3, 'policy.model.sigma_type': 'fixed'},
    ),
    'ppg': (
        older(
            'ppg',
            model=_CARTPOLE,
            learn=dict(algo=dict(aux_freq=5, beta_weight=1), epochs_aux=6),
            buffer=dict(
                buffer_name=['policy', 'value'],
                policy=dict(replay_buffer_size=100, max_use=10),
                value=dict(replay_buffer_size=1000, max_use=100),
            ),
        ),
        {'policy.learn.aux_freq': 5, 'replay_buffer.value.max_reuse': 100},
    ),
    'her': (
        older(
            'dqn',
            'bitflip',
            model=dict(obs_dim=10, action_dim=5, embedding_dim=64),
            collect=dict(traj_len=50, algo=dict(use_her=True, her_strategy='final', her_replay_k=1)),
            command=_EPS,
            env=dict(n_bits=5),
            actor=dict(n_episode=1, traj_len=50, path_data='./data'),
        ),
        {'actor.transform': dict(her=dict(strategy='final', k=1))},
    ),
    'her_by_default': (
        older('dqn', 'bitflip', collect=dict(algo=dict(use_her=True)), actor=dict(n_episode=1)),
        {'actor.transform': dict(her={})},
    ),
    'no_her': (
        older('dqn', 'bitflip', collect=dict(algo=dict(use_her=False, her_strategy='final'))),
        {'actor.transform': {}},
    ),
}


@pytest.mark.parametrize('name', OLDER)
def test_configs_of_the_older_dialect_mean_what_they_meant(name):
    config, expected = OLDER[name]
    resolved = compile_config(config)
    assert {path: get_path(resolved, path) for path in expected} == expected
    assert compile_config(resolved) == resolved


def test_what_means_nothing_any_more_is_said_in_a_line_each(caplog):
    with caplog.at_level('WARNING'):
        compile_config(OLDER['sac'][0])
        compile_config(OLDER['her'][0])
    said = [record.getMessage() for record in caplog.records if 'means nothing any more' in record.getMessage()]
    assert [line.split(' ')[0] for line in said] == [
        'policy.learn.learning_rate_value',
        'policy.learn.algo.reparameterization',
        'policy.learn.algo.policy_mean_reg_weight',
        'policy.learn.algo.policy_std_reg_weight',
        'replay_buffer.agent.thruput_controller',
        'actor.path_data',
    ]


@pytest.mark.parametrize('name, path', [('her', 'policy.collect.algo.use_her'), ('td3', 'policy.learn.algo.use_noise')])
def test_an_older_switch_is_true_or_false(name, path):
    with pytest.raises(ConfigError, match=f'{path}: unknown setting.*got 2'):
        compile_config(OLDER[name][0], overrides=[f'{path}=2'])


def test_a_policy_of_ones_own_with_an_older_name_stays_itself(monkeypatch):
    own = type('Own', (POLICY_REGISTRY.get('dqn'),), {})
    monkeypatch.setattr(POLICY_REGISTRY, '_entries', {**POLICY_REGISTRY._entries, 'c51': own})
    assert compile_config(OLDER['c51'][0]).policy.policy_type == 'c51'


def test_use_distributed_alone_is_said_and_goes_on(caplog):
    config = compile_config(DOCUMENTED, overrides=['learner.use_distributed=True'])
    with caplog.at_level('WARNING'):
        POLICY_REGISTRY.get('dqn')(config.policy)
    assert 'it learns alone' in caplog.text


def test_a_gpu_that_is_not_there_is_said_and_the_cpu_does(caplog, monkeypatch):
    import torch

    from nervex.policy import base_policy, create_policy

    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    base_policy._say_no_gpu.cache_clear()
    cfg = compile_config('cartpole_dqn', overrides=['policy.use_cuda=true'])
    for _ in range(2):
        assert next(create_policy(cfg.policy)._model.parameters()).device.type == 'cpu'
    assert caplog.text.count('finds no GPU here') == 1 and cfg.policy.use_cuda is True


def test_episodes_may_limit_a_run_and_a_negative_one_does_not(tmp_path, monkeypatch):
    from nervex.entry import serial_pipeline

    monkeypatch.chdir(tmp_path)
    few = ['evaluator.eval_freq=null', 'policy.learn.train_step=1', 'policy.learn.init_data_count=0']
    result = serial_pipeline('cartpole_dqn', seed=0, overrides=(*few, 'max_episode=5'))
    assert 5 <= result.episodes <= 8 and not result.solved
    endless = ('commander.max_episode=-1', 'commander.max_env_step=300')
    result = serial_pipeline('cartpole_dqn', seed=0, overrides=(*few, *endless))
    assert result.env_steps >= 300 and result.episodes > 8
    with pytest.raises(ConfigError, match=r'commander.max_episode: got -2'):
        compile_config('cartpole_dqn', overrides=['max_episode=-2'])


def test_the_env_section_says_how_an_env_of_gymnasium_draws():
    pytest.importorskip('pygame')
    from nervex.envs import GymEnv

    cfg = compile_config('acrobot_dqn', overrides=['env.render_mode=rgb_array'])
    with GymEnv(cfg.env) as env:
        env.reset()
        assert env.render_mode == 'rgb_array' and env.render().ndim == 3
    with pytest.raises(ConfigError, match='env_type: gym takes a render_mode'):
        compile_config('cartpole_dqn', overrides=['env.render_mode=human'])


LEARN, COLLECT = 'policy.learn.algo', 'policy.collect.algo'
#: each key of the older dialect by itself: config, older path, value, today's path, what it is there
OLDER_KEYS = [
    ('cartpole_ppo', f'{LEARN}.use_adv_norm', False, f'{LEARN}.adv_norm', False),
    ('cartpole_ppo', f'{LEARN}.lambda_', 0.9, f'{LEARN}.gae_lambda', 0.9),
    ('cartpole_ppo', f'{COLLECT}.lambda_', 0.9, f'{LEARN}.gae_lambda', 0.9),
    ('cartpole_r2d2', f'{LEARN}.use_value_rescale', False, f'{LEARN}.value_rescale', False),
    ('cartpole_r2d2', f'{COLLECT}.burnin_step', 3, f'{LEARN}.burnin_step', 3),
    ('cartpole_rainbow_iqn', f'{LEARN}.use_iqn', True, 'policy.use_iqn', True),
    ('cartpole_rainbow_iqn', f'{LEARN}.tau_num', 5, f'{LEARN}.tau', 5),
    ('cartpole_rainbow_iqn', f'{LEARN}.tau_prim_num', 5, f'{LEARN}.tau_prim', 5),
    ('pendulum_td3', f'{LEARN}.use_twin_critic', True, 'policy.model.use_twin_critic', True),
    ('pendulum_td3', f'{LEARN}.use_noise', False, f'{LEARN}.target_noise_sigma', 0.0),
    ('pendulum_td3', f'{LEARN}.noise_sigma', 0.3, f'{LEARN}.target_noise_sigma', 0.3),
    ('pendulum_td3', f'{LEARN}.noise_range', dict(min=-0.4, max=0.4), f'{LEARN}.target_noise_clip', 0.4),
    ('pendulum_td3', f'{COLLECT}.noise_sigma', 0.3, 'policy.collect.noise_sigma', 0.3),
    ('pendulum_sac', f'{LEARN}.use_twin_q', True, 'policy.model.use_twin_q', True),
    ('pendulum_sac', f'{LEARN}.is_auto_alpha', False, f'{LEARN}.auto_alpha', False),
    ('pendulum_sac', 'policy.learn.learning_rate_q', 0.1, 'policy.learn.learning_rate_critic', 0.1),
    ('pendulum_sac', 'policy.learn.learning_rate_policy', 0.1, 'policy.learn.learning_rate_actor', 0.1),
    ('pendulum_ppo', 'policy.model.fixed_sigma_value', 0.3, 'policy.model.sigma', 0.3),
    ('bitflip_her_dqn', f'{COLLECT}.her_strategy', 'final', 'actor.transform.her.strategy', 'final'),
    ('bitflip_her_dqn', f'{COLLECT}.her_replay_k', 2, 'actor.transform.her.k', 2),
    ('cartpole_dqn', 'env.norm_obs', dict(use_norm=False), 'env.manager.norm_obs', False),
    ('cartpole_dqn', 'replay_buffer.agent.sample_ratio', 2.0, 'replay_buffer.agent.min_sample_ratio', 2.0),
    ('cartpole_ppg', f'{LEARN}.aux_freq', 7, 'policy.learn.aux_freq', 7),
    ('cartpole_dqn', 'learner.use_distributed', False, 'policy.use_distributed', False),
]
#: and those that say nothing any more
OLDER_NOTHING = [
    ('pendulum_sac', f'{LEARN}.reparameterization', True),
    ('pendulum_sac', f'{LEARN}.policy_mean_reg_weight', 0.1),
    ('pendulum_sac', f'{LEARN}.policy_std_reg_weight', 0.1),
    ('pendulum_sac', 'policy.learn.learning_rate_value', 0.1),
    ('cartpole_dqn', 'replay_buffer.agent.thruput_controller', dict(window_seconds=30)),
    ('cartpole_dqn', 'learner.path_data', './data'),
    ('cartpole_dqn', 'actor.path_policy', '.'),
]


@pytest.mark.parametrize('name, old, value, new, meant', OLDER_KEYS, ids=lambda x: str(x) if '.' in str(x) else None)
def test_each_key_of_the_older_dialect_is_todays_setting(name, old, value, new, meant):
    config = plain_copy(read_config(name))
    pop_path(config, new)
    set_path(config, old, value)
    assert get_path(compile_config(config), new) == meant


@pytest.mark.parametrize('name, old, value', OLDER_NOTHING)
def test_what_means_nothing_any_more_is_said_in_one_line(name, old, value, caplog):
    config = plain_copy(read_config(name))
    set_path(config, old, value)
    compile_config(config)
    assert caplog.text.count('means nothing any more') == 1 and f'{old} means nothing any more: ' in caplog.text
