"""What a user adds from outside: a policy, an env, a network. Nothing inside nervex is edited."""

import copy
from pathlib import Path

import pytest
import torch
from easydict import EasyDict

from app_zoo.classic_control.cartpole.entry import cartpole_dqn_default_config
from nervex.config import read_config
from nervex.entry import serial_pipeline
from nervex.utils import ConfigError

MODULES = Path(__file__).parent / 'user_modules'


@pytest.fixture(autouse=True)
def user_modules_on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(MODULES))


def scratch_config(nstep, traj_len):
    cfg = copy.deepcopy(cartpole_dqn_default_config)
    cfg.policy.policy_type, cfg.policy.import_names = 'scratch_dqn', ['scratch_dqn']
    cfg.policy.learn.algo.nstep = nstep
    cfg.policy.collect = dict(traj_len=traj_len, unroll_len=1, algo=dict(nstep=nstep))
    return cfg


@pytest.mark.parametrize('nstep, traj_len', [(1, 1), (3, 1), pytest.param(3, 4, marks=pytest.mark.slow)])
def test_a_policy_written_from_scratch_solves_cartpole(nstep, traj_len):
    assert serial_pipeline(scratch_config(nstep, traj_len), seed=0).solved


@pytest.mark.parametrize('nstep', [1, 3])
def test_a_policy_written_from_scratch_runs_over_a_shipped_config(nstep, short_dqn):
    """Its ``collect.traj_len`` is the default then, None."""
    from scratch_dqn import ScratchDQN

    short_dqn.policy.learn.algo.nstep = nstep
    passed = serial_pipeline(short_dqn, seed=0, policy_fn=ScratchDQN)
    short_dqn.policy.policy_type, short_dqn.policy.import_names = 'scratch_dqn', ['scratch_dqn']
    named = serial_pipeline(short_dqn, seed=0)
    assert passed.config.policy.collect.traj_len is None
    assert named.train_iters == passed.train_iters > 0 and named.history == passed.history


@pytest.mark.parametrize('name', ['acrobot_dqn', 'bitflip_dqn', 'cartpole_dqn_vanilla', 'mountaincar_dqn'])
@pytest.mark.parametrize('nstep, traj_len', [(1, 'null'), (3, 'null'), (3, 'inf'), (3, 10)])
def test_the_documented_hooks_of_a_policy_run_over_other_shipped_configs(name, nstep, traj_len):
    from scratch_dqn import ScratchDQN

    class Documented(ScratchDQN):
        def _process_transition(self, obs, armor_output, timestep):
            keys = {'obs': obs, 'next_obs': timestep.obs, 'action': armor_output['action']}
            return EasyDict({**keys, 'reward': timestep.reward, 'done': timestep.done})

    algo = [f'policy.learn.algo.nstep={nstep}', f'policy.collect.algo.nstep={nstep}']
    few = ['policy.learn.init_data_count=64', 'commander.max_train_iter=3', 'env.actor_env_num=2']
    less = ['env.evaluator_env_num=1', 'evaluator.n_episode=1', f'policy.collect.traj_len={traj_len}']
    assert serial_pipeline(name, seed=0, policy_fn=Documented, overrides=(*algo, *few, *less)).train_iters >= 3


def test_every_transition_of_a_row_policy_gets_its_full_nstep_target(monkeypatch):
    """Rewards are all 1 in CartPole, so a padded target shows as a zero; only ends of episodes may have one."""
    from nervex.data import BufferManager

    pushed = []
    original = BufferManager.push_data

    def push(self, data, *args, **kwargs):
        pushed.extend(data)
        return original(self, data, *args, **kwargs)

    monkeypatch.setattr(BufferManager, 'push_data', push)
    cfg = scratch_config(3, 1)
    cfg.commander.max_env_step, cfg.evaluator.stop_val = 1000, 1000
    result = serial_pipeline(cfg, seed=0)
    padded = [row for row in pushed if float(torch.as_tensor(row['reward']).sum()) < 3]
    assert padded and all(row['done'] for row in padded)
    assert len(padded) == 2 * sum(1 for row in pushed if row['done']) / 3
    assert result.env_steps - len(pushed) <= 3 * 8  # at most n rows of each env still wait for their target


class OwnNet(torch.nn.Module):
    def __init__(self, obs_shape, act_shape):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(obs_shape, 128),
            torch.nn.ReLU(),
            torch.nn.Linear(128, 128),
            torch.nn.ReLU(),
            torch.nn.Linear(128, act_shape),
        )

    def forward(self, x):
        return {'logit': self.layers(x['obs'])}


class FCDQN(torch.nn.Module):
    """The tutorial's network, for the shapes that ``env.info()`` tells."""

    def __init__(self, obs_shape, act_shape):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(obs_shape, 64), torch.nn.ReLU())
        self.head = torch.nn.Linear(64, act_shape)

    def forward(self, x):
        return {'logit': self.head(self.layers(x['obs']))}


@pytest.mark.parametrize('name', ['dqn', 'dqn_vanilla'])
@pytest.mark.parametrize('form', ['class', 'instance'])
def test_the_tutorials_network_runs_as_a_class_and_as_an_instance(name, form):
    from app_zoo.classic_control.cartpole.envs import CartPoleEnv

    info, few = CartPoleEnv({}).info(), ('policy.learn.init_data_count=64', 'commander.max_train_iter=3')
    built = FCDQN(info.obs_space.shape[0], info.act_space.shape[0])
    cfg = read_config(f'cartpole_{name}')
    if form == 'class':
        cfg.policy.pop('model')
    result = serial_pipeline(cfg, seed=0, model=FCDQN if form == 'class' else built, overrides=few)
    assert result.train_iters >= 3


@pytest.mark.parametrize('kwargs', [dict(model_type=OwnNet), dict(model=OwnNet(4, 2))], ids=['class', 'instance'])
def test_a_users_own_network_solves_cartpole(kwargs):
    cfg = copy.deepcopy(cartpole_dqn_default_config)
    cfg.policy.pop('model')
    torch.manual_seed(0)
    if 'model' in kwargs:
        kwargs = dict(model=OwnNet(4, 2))
    assert serial_pipeline(cfg, seed=0, **kwargs).solved


def test_a_users_env_is_found_by_import_names_and_solved():
    cfg = EasyDict(
        dict(
            env=dict(env_type='two_arm', import_names=['two_arm_env'], actor_env_num=4, evaluator_env_num=2),
            policy=dict(
                policy_type='dqn', model=dict(hidden_dim_list=[16]), learn=dict(learning_rate=0.01, batch_size=16)
            ),
            actor=dict(n_sample=8),
            evaluator=dict(stop_val=1, eval_freq=5, n_episode=2),
            commander=dict(max_env_step=2000),
        )
    )
    assert serial_pipeline(cfg, seed=0).solved


def test_a_column_that_the_framework_owns_is_refused(short_dqn, monkeypatch):
    from nervex.policy.dqn import DQNPolicy

    class Taken(DQNPolicy):
        def _process_transition(self, obs, armor_output, timestep):
            return {**super()._process_transition(obs, armor_output, timestep), 'collect_iter': 3}

    with pytest.raises(ValueError, match="'collect_iter'"):
        serial_pipeline(short_dqn, policy_fn=Taken)


def own_parts(**more):
    hook = dict(mine=dict(type='own_hook', position='after_iter', ext_args=dict(word='hello')))
    cfg = dict(
        import_names=['own_parts'],
        env=dict(env_type='gym', env_id='CartPole-v1', env_manager_type='own_manager'),
        policy=dict(policy_type='dqn', learn=dict(batch_size=8)),
        replay_buffer=dict(type='own_buffer'),
        actor=dict(actor_type='own_actor', n_sample=16),
        learner=dict(learner_type='own_learner', hook=hook),
        commander=dict(commander_type='own_commander'),
        evaluator=dict(n_episode=1, eval_freq=1000),
    )
    return {**cfg, **more}


def test_every_worker_of_a_run_may_be_a_users_own():
    result = serial_pipeline(own_parts(), seed=0)
    import own_parts as parts

    assert {'actor', 'learner', 'commander', 'buffer', 'manager', 'hook hello'} == set(parts.CALLS)
    assert parts.CALLS['learner'] == parts.CALLS['hook hello'] == result.train_iters > 0
    assert parts.CALLS['actor'] == 3 and result.config.commander.patience == 3
    parts.CALLS.clear()


@pytest.mark.parametrize(
    'section, given, words',
    [
        ('commander', dict(commander_type='own_comander'), "unknown commander 'own_comander'; did you mean 'own_comm"),
        ('commander', dict(commander_type='own_commander', patiense=1), "did you mean 'patience'"),
        ('actor', dict(actor_type='own_actr', n_sample=8), "unknown actor 'own_actr'; did you mean 'own_actor'"),
        ('learner', dict(learner_type='own_lerner'), "unknown learner 'own_lerner'; did you mean 'own_learner'"),
        ('replay_buffer', dict(type='own_bufer'), "unknown kind of buffer 'own_bufer'; did you mean 'own_buffer'"),
    ],
)
def test_a_wrong_name_of_a_worker_is_answered_by_the_right_one(section, given, words):
    with pytest.raises(ConfigError) as error:
        serial_pipeline(own_parts(**{section: given}), seed=0)
    assert section in str(error.value) and words in str(error.value)


def extended():
    model = dict(model_type='discrete_net', hidden_dim_list=[8], head_kwargs=dict(head_type='bounded', bound=0.5))
    return dict(
        exp_name='extended',
        import_names=['own_extensions'],
        events=dict(remember=dict(most=500)),
        env=dict(env_type='gym', env_id='CartPole-v1', env_manager_type='told', actor_env_num=2),
        policy=dict(policy_type='dqn', model=model, learn=dict(batch_size=8)),
        replay_buffer=dict(type='doubling'),
        actor=dict(n_sample=16),
        learner=dict(learner_type='counting', hook=dict(log_show_after_iter=5)),
        evaluator=dict(n_episode=1, eval_freq=1000),
        commander=dict(max_env_step=160),
    )


def test_one_of_everything_in_docs_extend_is_added_from_outside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = serial_pipeline(extended(), seed=0)
    import own_extensions as own

    assert own.LAUNCHED == [[0, 1], [0]]  # the collecting envs, and the evaluating one
    assert {'learner/total_loss', 'evaluator/return_mean'} <= {name for name, *_ in own.LOGGED}
    state = torch.load(result.checkpoint, weights_only=True)
    assert state['attached'] == {'updates': {'count': result.train_iters}}
    assert 'head.q.weight' in state['model'] and set(own.REWARDS) == {2.0}

    resumed = serial_pipeline(None, resume='extended', overrides=('commander.max_env_step=240',))
    state = torch.load(resumed.checkpoint, weights_only=True)
    assert state['attached'] == {'updates': {'count': resumed.train_iters}}
    assert resumed.train_iters > result.train_iters


def test_a_command_of_ones_own_gets_all_options(capsys):
    from nervex.entry.cli import main

    main(['-m', 'own_extensions:command', '-s', '3', 'one', 'two'])
    import own_extensions as own

    assert own.COMMANDS[-1]['seed'] == 3 and own.COMMANDS[-1]['folders'] == ('one', 'two')
    for mode, words in (('own_extensions:comand', 'comand'), ('seriel', "'seriel' is not one of")):
        with pytest.raises(SystemExit) as end:
            main(['-m', mode])
        assert end.value.code == 2 and words in capsys.readouterr().err
