"""What an evaluation tells of teams: who won, and what each agent got."""

import csv

import numpy as np
import pytest

from app_zoo.multiagent_particle.envs import CooperativeNavigationEnv
from nervex.envs.tests import fakes
from nervex.utils import ConfigError
from nervex.worker.actor import BaseSerialEvaluator
from nervex.worker.actor.base_serial_evaluator import WON, Evaluation
from nervex.worker.actor.env_manager import create_env_manager
from nervex.worker.actor.tests.counting import Hooks


class Duel(fakes.CounterEnv):
    """Won where an episode is long; says so by ``key`` (None: not at all)."""

    config = dict(key='win')

    def step(self, action):
        step = super().step(action)
        said = {} if self._cfg.key is None else {self._cfg.key: np.bool_(self._cfg.length > 2)}
        return step._replace(info={**step.info, **said} if step.done else step.info)


class Everywhere(Hooks):
    """All agents of a team go the same way."""

    def forward(self, data_id, data):
        return {'action': np.ones(tuple(data['obs']['action_mask'].shape[:2]), np.int64)}


@pytest.fixture
def evaluator(tmp_path):
    made = []

    def make(env, cfgs, kind='base', hooks=Hooks, manager=None, **cfg):
        one = BaseSerialEvaluator(cfg, str(tmp_path / str(len(made))), seed=3)
        made.append(one)
        one.env = create_env_manager(kind, env, cfgs, manager)
        one.env.launch()
        one.policy = hooks().eval_mode()
        return one

    yield make
    for one in made:
        one.close()


def duels(*lengths, **cfg):
    return [dict(length=length, **cfg) for length in lengths]


@pytest.mark.parametrize('key', WON)
@pytest.mark.parametrize('kind', ['base', 'async_subprocess'])
def test_the_win_rate_is_the_share_of_episodes_that_say_so(evaluator, kind, key):
    one = evaluator(Duel, duels(2, 3, 4, key=key), kind)
    result = one.evaluate(4)  # the first env plays two, and loses them
    assert result.win_rate == 0.5 and result.wins[result.lengths > 2].all() and result.agent_returns is None
    assert evaluator(Duel, duels(2, key=None)).evaluate(1).win_rate is None


def test_an_episode_that_is_cut_is_not_won(evaluator):
    result = evaluator(Duel, duels(3, 9), max_episode_step=4).evaluate(2)
    assert result.wins[np.argsort(result.lengths)].tolist() == [1, 0]


def test_the_log_the_curve_and_a_resume_know_the_win_rate(evaluator, tmp_path):
    one = evaluator(Duel, duels(2, 3), n_episode=2)
    one.eval(0, envstep=5)
    again = evaluator(Duel, duels(2, 3))
    again.load_state_dict(one.state_dict())
    assert (again.last_win_rate, again.last_agent_means) == (0.5, None)
    one.eval(10, envstep=50)
    with open(one.curve_path) as f:
        rows = list(csv.DictReader(f))
    assert [(row['env_step'], row['length_mean'], row['win_rate']) for row in rows] == [
        ('5', '2.5', '0.5'),
        ('50', '2.5', '0.5'),
    ]
    assert ', win_rate 0.5000' in (tmp_path / '0/log/evaluator/evaluator_logger.txt').read_text()


@pytest.mark.parametrize('stop, reached', [(dict(stop_win_rate=0.5), True), (dict(stop_win_rate=0.6), False)])
@pytest.mark.parametrize('value, high_enough', [(None, True), (4.5, True), (5, False)])
def test_a_run_stops_where_all_that_is_stated_is_reached(evaluator, stop, reached, value, high_enough):
    one = evaluator(Duel, duels(2, 3), n_episode=2, stop_val=value, **stop)  # returns 3 and 6
    assert one.judge()[0] is (reached and high_enough)


def test_a_win_rate_has_to_be_confirmed_on_other_episodes(evaluator, monkeypatch):
    one = evaluator(Duel, duels(2, 3), n_episode=2, stop_win_rate=0.9)
    wins = iter([[1, 1], [0, 1], [1, 1], [1, 1]])

    def evaluate(n_episode=None, seed_offset=0):
        return Evaluation(np.zeros(2), np.ones(2), 0.0, np.array(next(wins)))

    monkeypatch.setattr(one, 'evaluate', evaluate)
    stop, result = one.judge()
    assert not stop and result.win_rate == 0.75
    assert one.judge()[0]


def test_a_win_rate_that_nobody_tells_is_an_error_of_the_config(evaluator):
    with pytest.raises(
        ConfigError, match=r"stop_win_rate: got 0.5, but no last info .*'win', 'is_success', 'battle_won'"
    ):
        evaluator(Duel, duels(2, key=None), stop_win_rate=0.5).judge()


@pytest.mark.parametrize('kind', ['base', 'vector', 'sync_subprocess'])
@pytest.mark.parametrize('manager', [None, dict(norm_reward=True)], ids=['', 'scaled'])
def test_each_agent_has_its_own_return(evaluator, kind, manager):
    cfg = dict(team_reward='each', episode_limit=5)
    one = evaluator(CooperativeNavigationEnv, [cfg] * 2, kind, Everywhere, manager, n_episode=2)
    result = one.evaluate()
    expected = np.zeros((2, 3))
    for k in range(2):
        env = CooperativeNavigationEnv(cfg)
        env.seed(3 + k)
        env.reset()
        expected[k] = sum(env.step([1, 1, 1]).reward.astype(float) for _ in range(5))
    assert np.allclose(result.agent_returns, expected) and np.allclose(result.returns, expected.sum(1))
    one.eval(1)
    with open(one.curve_path) as f:
        (row,) = csv.DictReader(f)
    assert [float(row[f'agent_{k}_return_mean']) for k in range(3)] == pytest.approx(expected.mean(0).tolist())
    assert one.last_agent_means == result.agent_means and result.win_rate is None


def test_a_cut_team_has_the_returns_so_far(evaluator):
    cfg = dict(team_reward='each', episode_limit=9)
    result = evaluator(CooperativeNavigationEnv, [cfg], hooks=Everywhere, max_episode_step=4).evaluate(1)
    assert result.lengths.tolist() == [4] and result.returns[0] == pytest.approx(result.agent_returns.sum())
