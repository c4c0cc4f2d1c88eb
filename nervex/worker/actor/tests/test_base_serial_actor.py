"""
The actor over CounterEnvs: an observation is [tag, episode, step, last action], the reward of step t is t. So each
transition says which env, episode and step it is, and whether obs, action, reward and next_obs belong together.
"""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from nervex.envs.tests import fakes
from nervex.utils import ConfigError
from nervex.worker.actor import BaseSerialActor, BaseSerialEvaluator
from nervex.worker.actor.env_manager import create_env_manager
from nervex.worker.actor.tests.counting import Hooks, check_rows
from nervex.worker.coordinator import BaseSerialCommander
from nervex.worker.learner import BaseLearner


@pytest.fixture
def actor(tmp_path):
    made = []

    def make(
        env=fakes.CounterEnv,
        cfgs=({'tag': 0, 'length': 3}, {'tag': 1, 'length': 5}),
        kind='base',
        manager=None,
        mode=None,
        **cfg,
    ):
        one = BaseSerialActor(cfg, exp_name=str(tmp_path))
        made.append(one)
        one.env = create_env_manager(kind, env, list(cfgs), manager or {})
        one.env.launch()
        one.policy = mode or Hooks().collect_mode()
        return one

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize('n_sample', [2, 3, 8, 9])
def test_exactly_n_sample_rows_and_none_lost_between_calls(actor, n_sample):
    one = actor(n_sample=n_sample)
    rows = []
    for iteration in range(4):
        data, info = one.generate_data(iteration)
        assert len(data) == n_sample and info['sample'] == n_sample
        assert (np.asarray(data['collect_iter']) <= iteration).all()
        rows += check_rows(data)[0]
    assert len(set(rows)) == 4 * n_sample
    for tag in (0, 1):
        mine = [row for row in rows if row[0] == tag]
        assert mine == sorted(mine)  # in the order of time


def test_on_policy_nothing_of_a_call_waits_for_the_next_one(actor):
    mode = Hooks().collect_mode(get_attribute=lambda name: True if name == 'on_policy' else None)
    one = actor(mode=mode, n_sample=3)  # of two envs: 2 steps each are 4 samples
    rows = []
    for iteration in range(3):
        data, info = one.generate_data(iteration)
        assert len(data) == info['sample'] == 4
        assert np.asarray(data['collect_iter']).tolist() == [iteration] * 4
        rows += check_rows(data)[0]
    assert len(set(rows)) == one.total_step == one.total_sample == 12


def test_whole_episodes(actor):
    one = actor(n_episode=3)
    data, info = one.generate_data(0)
    rows, done = check_rows(data)
    assert info['episode'] >= 3 and done.sum() == info['episode']
    lengths = {0: 3, 1: 5}
    for (tag, _, step), ended in zip(rows, done):
        assert ended == (step == lengths[tag])


@pytest.mark.parametrize('rows', [False, True])
@pytest.mark.parametrize('begun', [False, True])
def test_whole_episodes_of_an_actor_of_samples_come_in_one_call(actor, rows, begun):
    one = actor(mode=row_mode([]) if rows else None, n_sample=10)
    if begun:
        one.generate_data(0)
    data, info = one.generate_data(1, n_episode=4)
    steps, done = check_rows(data)
    assert info['episode'] == done.sum() == 4 and len(data) == info['sample']
    lengths = {0: 3, 1: 5}
    for tag, episode in {step[:2] for step in steps}:
        assert [s for t, e, s in steps if (t, e) == (tag, episode)] == list(range(1, lengths[tag] + 1))
    assert len(one.generate_data(2)[0]) == 10 and len(one.generate_data(3)[0]) == 10


def test_a_call_needs_one_of_the_two_amounts(actor):
    one = actor()
    with pytest.raises(ValueError, match='n_sample or n_episode'):
        one.generate_data(0)
    with pytest.raises(ValueError, match='n_sample=3, n_episode=1'):
        one.generate_data(0, n_episode=1, n_sample=3)


def test_episodes_are_counted_with_their_returns(actor):
    one = actor(n_sample=30)  # 15 steps of each env: 5 and 3 episodes
    one.generate_data(0)
    assert one.total_episode == 8 and one.total_step == 30
    assert sorted(one.recent_returns) == [6.0] * 5 + [15.0] * 3  # 1+2+3 and 1+...+5
    assert sorted(one.recent_lengths) == [3] * 5 + [5] * 3


@pytest.mark.parametrize('n_sample, rounds', [(4, [10, 20, 30]), (60, [2, 4, 5, 7, 9, 10])])
def test_lines_in_the_log_come_by_rounds_and_where_these_are_long_by_steps(actor, n_sample, rounds):
    one, said = actor(n_sample=n_sample, collect_print_freq=10), []
    one.log.totals = lambda who, iter_count: said.append(who.rounds)
    for _ in range(rounds[-1]):
        one.generate_data(0)
    assert said == rounds


def test_time_limits_are_told_from_ends(actor):
    data, _ = actor(fakes.TimeLimitEnv, n_sample=10).generate_data(0)
    assert (np.asarray(data['truncated']) == np.asarray(data['done'])).all() and np.asarray(data['done']).any()
    data, _ = actor(n_sample=10).generate_data(0)
    assert not np.asarray(data['truncated']).any()


@pytest.mark.parametrize('kind', ['base', 'sync_subprocess', 'async_subprocess', 'thread'])
def test_rows_fit_together_in_every_manager(actor, kind):
    rows, _ = check_rows(actor(kind=kind, n_sample=40).generate_data(0)[0])
    assert len(set(rows)) == 40


def row_mode(samples):
    hooks = Hooks()

    def transition(obs, output, timestep):
        assert obs.shape == (4,) and timestep.reward.shape == (1,) and isinstance(timestep.done, bool)
        assert isinstance(timestep.info, dict) and output['action'].dim() == 0
        return {
            'obs': obs,
            'next_obs': timestep.obs,
            'action': output['action'],
            'reward': timestep.reward,
            'done': timestep.done,
        }

    def sample(cache):
        rows = list(cache)
        cache.clear()
        samples.extend(rows)
        return rows

    return hooks.collect_mode(process_transition=transition, get_train_sample=sample)


@pytest.mark.parametrize('kind', ['base', 'async_subprocess'])
def test_row_policies_get_the_documented_types_and_rows_of_their_own(actor, kind):
    from nervex.data import Batch

    one = actor(kind=kind, mode=row_mode([]), n_sample=40, traj_len=2)
    rows, _ = check_rows(Batch.from_rows(one.generate_data(0)[0]))
    assert len(set(rows)) == 40


def test_only_the_transition_in_rows(actor):
    hooks = Hooks()

    def transition(obs, output, timestep):
        return {
            'obs': obs,
            'next_obs': timestep.obs,
            'action': output['action'],
            'reward': timestep.reward,
            'done': torch.tensor(timestep.done),
        }

    one = actor(mode=hooks.collect_mode(process_transition=transition), n_sample=12)
    assert len(set(check_rows(one.generate_data(0)[0])[0])) == 12


def test_the_policy_forgets_the_state_of_finished_envs(actor):
    hooks = Hooks()
    actor(mode=hooks.collect_mode(), n_sample=6).generate_data(0)
    assert hooks.resets == [[0]]  # env 0 ended with its third step, env 1 did not


@pytest.mark.parametrize('kind', ['base', 'sync_subprocess'])
@pytest.mark.parametrize('fault', ['raise', 'abnormal', 'nan'])
def test_steps_of_an_episode_that_failed_are_left_out(actor, kind, fault):
    """Env 0 fails in step 4 of its second episode: steps 1 to 3 of it do not arrive, and env 1 is not disturbed."""
    cfgs = [{'tag': 0, 'length': 6, 'fault': fault, 'at': 4, 'episodes': [2]}, {'tag': 1, 'length': 6}]
    one = actor(fakes.FaultyEnv, cfgs, kind, {'retry_waiting_time': 0.0}, n_sample=60, traj_len=30)
    rows, _ = check_rows(one.generate_data(0)[0])
    assert not [row for row in rows if row[:2] == (0, 2)]
    assert [row for row in rows if row[:2] == (0, 1)] == [(0, 1, step) for step in range(1, 7)]
    assert [row for row in rows if row[:2] == (0, 3)] == [(0, 3, step) for step in range(1, 7)]
    ones = [row for row in rows if row[0] == 1]
    assert ones[:30] == [(1, episode, step) for episode in range(1, 6) for step in range(1, 7)]


def test_state_goes_on_where_it_was(actor):
    one = actor(n_sample=3)
    one.generate_data(0)
    state = one.state_dict()
    other = actor(n_sample=3)
    other.generate_data(0)
    other.generate_data(0)
    other.load_state_dict(state)
    assert other.total_step == one.total_step and len(other._spare[0]) == len(one._spare[0])


@pytest.fixture
def evaluator(tmp_path):
    made = []

    def make(seed=None, env_num=3, kind='base', **cfg):
        one = BaseSerialEvaluator(cfg, str(tmp_path), seed=seed)
        made.append(one)
        cfgs = [{'tag': k, 'length': 2 + k} for k in range(env_num)]
        if kind == 'vector':  # which has one config for all
            one.env = create_env_manager(kind, lambda same: fakes.CounterEngine(cfgs), [{}] * env_num)
        else:
            one.env = create_env_manager(kind, fakes.CounterEnv, cfgs)
        one.env.launch()
        one.policy = Hooks().eval_mode()
        return one

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize('kind', ['base', 'sync_subprocess', 'async_subprocess', 'thread', 'vector'])
@pytest.mark.parametrize('n', [1, 3, 7])
def test_every_env_plays_its_share(evaluator, n, kind):
    result = evaluator(kind=kind).evaluate(n)
    assert len(result.returns) == n
    lengths = sorted(result.lengths.tolist())
    assert lengths == {1: [2], 3: [2, 3, 4], 7: [2, 2, 2, 3, 3, 4, 4]}[n]
    assert (result.returns == result.lengths * (result.lengths + 1) / 2).all()


class Wondering(Hooks):
    """Refuses to be asked about no env at all."""

    def forward(self, data_id, data):
        assert len(data_id)
        return super().forward(data_id, data)


@pytest.mark.parametrize('kind', ['async_subprocess', 'thread'])
def test_a_policy_is_not_asked_while_only_envs_that_are_done_are_ready(tmp_path, kind):
    one = BaseSerialEvaluator({}, str(tmp_path))
    one.env = create_env_manager(kind, fakes.CounterEnv, [{'length': 1}, {'length': 3, 'sleep_s': 0.04}])
    one.env.launch()
    one.policy = Wondering().eval_mode()
    assert one.evaluate(2).lengths.tolist() == [1, 3]
    one.close()


class TenfoldGame(fakes.CounterEnv):
    """Its rewards are a tenth of the score that it is judged by."""

    def step(self, action):
        step = super().step(action)
        return step._replace(reward=step.reward / 10)


@pytest.mark.parametrize('kind', ['base', 'async_subprocess'])
def test_scaled_rewards_are_judged_by_the_score_that_the_env_tells(tmp_path, kind):
    evaluator = BaseSerialEvaluator({'n_episode': 4, 'stop_val': 6, 'confirm_episode': 0}, str(tmp_path))
    evaluator.env = create_env_manager(kind, TenfoldGame, [{'length': 3}, {'length': 4}])
    evaluator.env.launch()
    evaluator.policy = Hooks().eval_mode()
    stop, result = evaluator.judge()
    evaluator.close()
    assert stop and sorted(result.returns.tolist()) == [6.0, 6.0, 10.0, 10.0]  # 1 + 2 + 3 (+ 4)


@pytest.mark.parametrize('kind', ['base', 'async_subprocess', 'vector'])
def test_an_episode_that_does_not_end_is_cut_and_that_is_said(evaluator, caplog, kind):
    result = evaluator(kind=kind, max_episode_step=3).evaluate(6)  # of envs whose episodes take 2, 3 and 4 steps
    assert sorted(result.lengths.tolist()) == [2, 2, 3, 3, 3, 3]
    assert (result.returns == result.lengths * (result.lengths + 1) / 2).all()
    (said,) = (record.getMessage() for record in caplog.records)
    assert 'cut after 3 steps' in said and 'evaluator.max_episode_step' in said


def test_a_cut_episode_has_the_return_of_rewards_that_were_not_scaled(tmp_path):
    one = BaseSerialEvaluator({'n_episode': 1, 'max_episode_step': 3}, str(tmp_path))
    one.env = create_env_manager('base', fakes.CounterEnv, [{'length': 9}], {'norm_reward': True})
    one.env.launch()
    one.policy = Hooks().eval_mode()
    assert one.evaluate().returns.tolist() == [6.0]
    one.close()


def test_episodes_played_for_nothing_are_not_shown(evaluator):
    shown = []
    keep = lambda *seen: shown.append(copy.deepcopy(seen))  # noqa: E731
    result = evaluator(kind='vector').evaluate(4, on_step=keep)
    for seen, action, step in shown:
        assert len(seen.obs) == len(action) == len(step) == len(step.obs)
        assert seen.env_id.tolist() == step.env_id.tolist() == seen.obs[:, 0].tolist() == step.obs[:, 0].tolist()
        assert (step.obs[:, 2] == seen.obs[:, 2] + 1).all() and set(step.infos) == set(np.flatnonzero(step.done))
    assert sum(len(step) for *_, step in shown) == result.lengths.sum() == 2 + 2 + 3 + 4


def test_a_policy_that_was_not_trained_never_solves(evaluator):
    one = evaluator(n_episode=3, stop_val=1, confirm_episode=0)
    assert one.eval(0)[0] is False and one.eval(1)[0] is True


def test_a_lucky_evaluation_is_not_confirmed(evaluator, monkeypatch):
    one = evaluator(n_episode=2, stop_val=5)
    played = iter([10.0, 1.0, 10.0, 9.0])

    def evaluate(n_episode=None, seed_offset=0):
        from nervex.worker.actor.base_serial_evaluator import Evaluation

        value = next(played)
        return Evaluation(np.full(2, value), np.full(2, 1), 0.0)

    monkeypatch.setattr(one, 'evaluate', evaluate)
    assert one.eval(1) == (False, 5.5)
    assert one.eval(2) == (True, 9.5)


def test_due_and_best(evaluator):
    one = evaluator(n_episode=1, eval_freq=10)
    assert one.due(0)
    one.eval(0)
    assert not one.is_new_best()  # nobody wants to keep the untrained policy
    assert not one.due(9) and one.due(10)
    one.eval(10)
    assert one.is_new_best() and not one.is_new_best()
    assert one.due(4)  # the learner went back to an earlier state


def test_evaluations_play_the_same_episodes_each_time(evaluator):
    one = evaluator(seed=5, n_episode=6)
    drawn = []
    for _ in range(2):
        one.evaluate()
        drawn.append(one.env.draw)
    assert drawn[0] == drawn[1]
    one.evaluate(seed_offset=1)
    assert one.env.draw != drawn[0]


@pytest.mark.parametrize('cls', [BaseSerialActor, BaseSerialEvaluator, BaseLearner, BaseSerialCommander])
def test_workers_that_are_built_by_hand_check_their_settings_too(cls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match='n_episodee: unknown setting'):
        cls({'n_episodee': 3})


@pytest.mark.parametrize('missing', ['env', 'policy'])
def test_an_actor_without_its_parts_says_which_to_set(missing):
    actor = BaseSerialActor({'n_sample': 8})
    if missing == 'policy':
        actor.env = SimpleNamespace()
    with pytest.raises(RuntimeError, match=f'has no {missing} yet: set actor.env'):
        actor.generate_data(0)
