"""Collecting beside learning (``actor.beside_learning``): what is collected when and by whom, and how that ends."""

import copy
import threading
from concurrent.futures import Future

import pytest
import torch

from app_zoo.classic_control.pendulum.entry import pendulum_sac_default_config
from nervex.entry import serial_pipeline
from nervex.entry.offline_entry import OfflineRun
from nervex.envs.tests.fakes import CounterEnv
from nervex.graph.acting import GraphedForward
from nervex.parallel.run import ParallelRun
from nervex.policy import batched
from nervex.policy.dqn import DQNPolicy
from nervex.run import beside
from nervex.run.build import start_serial
from nervex.run.launch import Passed, prepare_launch
from nervex.run.serial_run import SerialRun
from nervex.utils import ConfigError

BESIDE = ('actor.beside_learning=true', 'learner.resume.interval_s=null')
UPDATES, ROUND = 3, 8  # of a round, and rows of one


class VersionedDQN(DQNPolicy):
    """Writes the version of its weights (the updates that they have seen) into every row, and of what it evaluates."""

    evaluated: list = []
    threads: set = set()

    def _build_model(self, model):
        built = super()._build_model(model)
        built.register_buffer('version', torch.zeros((), dtype=torch.int64))
        return built

    def _forward_learn(self, data):
        self._model.version += 1
        return super()._forward_learn(data)

    @batched
    def _process_transition(self, obs, armor_output, timestep):
        self.threads.add(threading.current_thread().name)
        version = self._model.version.expand(len(timestep.done)).numpy().copy()
        return {**super()._process_transition(obs, armor_output, timestep), 'version': version}

    @batched
    def _forward_eval(self, data_id, data):
        self.evaluated.append(int(self._model.version))
        return super()._forward_eval(data_id, data)


class BreakingEnv(CounterEnv):
    """Fails for good after so many steps of its first env."""

    config = dict(until=150)
    steps_done = 0

    def step(self, action):
        BreakingEnv.steps_done += 1
        if BreakingEnv.steps_done > self._cfg.until:
            raise OSError('the simulator has gone')
        return super().step(action)


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    threads, precision = threading.active_count(), torch.get_float32_matmul_precision()
    yield
    assert threading.active_count() == threads and torch.get_float32_matmul_precision() == precision


@pytest.fixture
def rounds(monkeypatch):
    """Of each round: the updates done when it was pushed, what its rows say of that, and their version."""
    found, collect = [], SerialRun.collect

    def seen(run):
        push = run.buffer.push_data
        run.buffer.push_data = lambda data: (found.append((run.learner.train_iter, data)), push(data))
        try:
            collect(run)
        finally:
            del run.buffer.push_data

    monkeypatch.setattr(SerialRun, 'collect', seen)
    return found


def versioned(cfg):
    cfg = copy.deepcopy(cfg)
    cfg.policy.learn.update(train_step=UPDATES, init_data_count=0, batch_size=4)
    cfg.policy.learn.algo.nstep = 1
    cfg.actor.n_sample = ROUND
    cfg.commander.max_env_step = 10 * ROUND
    VersionedDQN.evaluated, VersionedDQN.threads = [], set()
    return cfg


@pytest.mark.parametrize('on, late', [(False, 0), (True, UPDATES)])
def test_a_round_is_collected_by_weights_of_exactly_one_round_before(short_dqn, rounds, on, late):
    overrides = (f'actor.beside_learning={str(on).lower()}', 'env.actor_env_num=4')
    serial_pipeline(versioned(short_dqn), 0, policy_fn=VersionedDQN, overrides=overrides)
    assert len(rounds) == 10
    for updates, data in rounds:
        expected = [max(0, updates - late)] * ROUND
        assert data['version'].tolist() == data['collect_iter'].tolist() == expected
    assert VersionedDQN.threads == ({'collecting_0'} if on else {'MainThread'})


def test_an_evaluation_sees_the_learners_weights_and_counts_what_was_learned_from(short_dqn):
    cfg = versioned(short_dqn)
    cfg.evaluator.eval_freq, cfg.evaluator.n_episode = UPDATES, 1
    result = serial_pipeline(cfg, 0, policy_fn=VersionedDQN, overrides=BESIDE)
    assert sorted(set(VersionedDQN.evaluated)) == [UPDATES * k for k in range(11)]
    assert [(updates, steps) for updates, steps, _ in result.history] == [(UPDATES * k, ROUND * k) for k in range(11)]


class AtOnce:
    """In place of the thread: each round is collected before the learner begins."""

    def __init__(self, *args):
        pass

    def submit(self, function, *args):
        future = Future()
        future.set_result(function(*args))
        return future

    def shutdown(self, **kwargs):
        pass


def config_of(name, short_dqn, short_ppo):
    if name == 'sac':
        cfg = copy.deepcopy(pendulum_sac_default_config)
        cfg.policy.learn.init_data_count, cfg.evaluator.eval_freq = 32, 20
        cfg.commander.max_env_step = 120
        return cfg
    cfg = short_ppo if name == 'ppo' else short_dqn
    cfg.commander.max_env_step = 1024 if name == 'ppo' else 400
    if name == 'ppo':
        cfg.env.manager = dict(norm_obs=True, norm_reward=True)
        cfg.evaluator.eval_freq = 3
    return cfg


@pytest.mark.parametrize('name', ['dqn', 'ppo', 'sac'])
def test_the_same_seed_gives_the_same_run_as_often_as_it_is_run_and_without_the_thread(
    name, short_dqn, short_ppo, monkeypatch
):
    cfg, ends = config_of(name, short_dqn, short_ppo), []
    for folder in ('first', 'second', 'at_once'):
        if folder == 'at_once':
            monkeypatch.setattr(beside, 'ThreadPoolExecutor', AtOnce)
        result = serial_pipeline(cfg, 5, overrides=(*BESIDE, f'exp_name={folder}'))
        ends.append((result.history, torch.load(result.checkpoint, weights_only=True)['model']))
    assert ends[0][0] == ends[1][0] == ends[2][0]
    for _, model in ends[1:]:
        assert all(torch.equal(value, ends[0][1][name]) for name, value in model.items())


def test_a_finished_run_goes_on_from_the_round_that_was_not_learned(short_ppo):
    short_ppo.exp_name, more = 'run', ('commander.max_env_step=768',)
    straight = serial_pipeline(short_ppo, 1, overrides=(BESIDE[0], *more, 'exp_name=straight'))
    first = serial_pipeline(short_ppo, 1, overrides=BESIDE[:1])
    assert first.env_steps == 256
    longer = serial_pipeline(None, resume='run', overrides=more)
    assert longer.env_steps == 768 and longer.history == straight.history


def test_what_a_round_raises_is_raised_in_the_loop_with_the_envs_own_traceback(short_dqn):
    BreakingEnv.steps_done, setting = 0, (BreakingEnv, [dict()], [dict(until=10**9)])
    short_dqn.policy.model = {}
    with pytest.raises(Exception, match='the simulator has gone') as caught:
        serial_pipeline(short_dqn, 0, env_setting=setting, overrides=(*BESIDE, 'evaluator.eval_freq=null'))
    assert any(entry.name == 'generate_data' for entry in caught.traceback)


def test_ctrl_c_in_a_slow_round_waits_for_one_step_only(short_dqn, monkeypatch):
    taken = []

    class Slow(CounterEnv):
        def step(self, action):
            taken.append(threading.current_thread().name)
            if len(taken) > 100:
                threading.Event().wait(0.02)
            return super().step(action)

    def interrupted(run, batch):
        raise KeyboardInterrupt

    monkeypatch.setattr(SerialRun, 'train', interrupted)
    short_dqn.policy.model, short_dqn.env.actor_env_num = {}, 1
    overrides = (*BESIDE, 'actor.n_sample=100', 'evaluator.eval_freq=null')
    with pytest.raises(KeyboardInterrupt) as caught:
        serial_pipeline(short_dqn, 0, env_setting=(Slow, [dict()], [dict()]), overrides=overrides)
    assert str(caught.value).endswith('.pth.tar') and len(taken) < 150  # of 200
    assert set(taken) == {'collecting_0'}


class DropoutDQN(DQNPolicy):
    def _forward_collect(self, data_id, data):
        torch.nn.functional.dropout(torch.ones(3), 0.5)
        return super()._forward_collect(data_id, data)


def test_acting_that_draws_from_the_global_generator_is_refused(short_dqn):
    with pytest.raises(ConfigError, match=r'actor.beside_learning: got True.*DropoutDQN draws from torch'):
        serial_pipeline(short_dqn, 0, policy_fn=DropoutDQN, overrides=BESIDE)


def test_other_drawing_gets_generators_of_its_own():
    def drawn():
        x = torch.zeros(3, dtype=torch.float64)
        made = [
            torch.randn_like(x),
            torch.rand(3),
            torch.randint(9, (3,)),
            torch.zeros(3).uniform_(),
            torch.randperm(4),
        ]
        return [*made, torch.rand_like(x, dtype=torch.float32), torch.bernoulli(torch.full((3,), 0.5))]

    before, answers = torch.get_rng_state(), []
    for _ in range(2):
        with beside._OwnChance(beside.Draws(seed=4)):
            answers.append(drawn())
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(*answers))
    assert answers[0][0].dtype == torch.float64 and answers[0][1].dtype == torch.float32


def test_a_recording_leaves_out_what_other_threads_call():
    class Counting(torch.nn.Module):  # which cannot be recorded
        calls = 0

        def forward(self, data):
            self.calls += 1
            return {'logit': data['obs']}

    class Calling(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.other = [Counting()]  # no part of it

        def forward(self, data):
            x = torch.ones(2)
            thread = threading.Thread(target=self.other[0], args=({'obs': x},))
            thread.start()
            thread.join()
            return {'logit': data['obs'] * 2}

    acting = GraphedForward(Calling())
    assert acting({'obs': torch.ones(2, 3)})['logit'].sum() == 12 and acting.eager_reason is None


def test_modes_that_collect_otherwise_refuse_it(short_dqn):
    short_dqn.actor.beside_learning = True
    short_dqn.commander.max_train_iter = 10
    with pytest.raises(ConfigError, match=r'actor\.beside_learning: got True, but in parallel mode'):
        ParallelRun(prepare_launch(short_dqn, 0, Passed()))
    with pytest.raises(ConfigError, match=r'actor\.beside_learning: got True, but nothing is collected in offline'):
        start_serial(prepare_launch(short_dqn, 0, Passed()), kind=OfflineRun)


def test_self_play_is_refused():
    overrides = (*BESIDE, 'commander.selfplay=latest')
    with pytest.raises(ConfigError, match=r'actor\.beside_learning: got True, but opponents that learn'):
        serial_pipeline('tic_tac_toe_dqn', 0, overrides=overrides)
