"""The documented forms of a policy's hooks, one without ``@batched`` at a time, and what is said of wrong ones."""

import numpy as np
import pytest
import torch

from nervex.data import Batch, BufferManager
from nervex.envs.tests import fakes
from nervex.policy.dqn import DQNPolicy
from nervex.policy.tests.toy_envs import SwitchesEnv
from nervex.worker.actor import BaseSerialActor, BaseSerialEvaluator
from nervex.worker.actor.env_manager import create_env_manager
from nervex.worker.actor.tests.counting import Hooks, check_rows
from nervex.worker.learner import BaseLearner


@pytest.fixture
def collect(tmp_path):
    """The data of one round of an actor with this mode."""
    made = []

    def run(mode, env=fakes.CounterEnv, cfgs=({'tag': 0, 'length': 3}, {'tag': 1, 'length': 5}), kind='base', **cfg):
        actor = BaseSerialActor({'n_sample': 20, **cfg}, exp_name=str(tmp_path))
        made.append(actor)
        actor.env = create_env_manager(kind, env, list(cfgs))
        actor.env.launch()
        actor.policy = mode
        return actor.generate_data(0)[0]

    yield run
    for actor in made:
        actor.close()


def prepare(data):
    """{env_id: obs} -> (ids, the model's input)."""
    assert all(isinstance(i, int) and torch.is_tensor(obs) and obs.shape == (4,) for i, obs in data.items())
    return list(data), {'obs': torch.stack(list(data.values()))}


def forward(data_id, data):
    assert torch.is_tensor(data['obs'])
    return {'action': (data['obs'][:, 2] % 2).long()}


def finish(data_id, output):
    assert torch.is_tensor(output['action'])
    return {int(i): {'action': output['action'][k]} for k, i in enumerate(data_id)}


def transition(obs, output, timestep):
    return {**dict(obs=obs, next_obs=timestep.obs), 'action': output['action'], **step_of(timestep)}


def step_of(timestep):
    return {'reward': timestep.reward, 'done': timestep.done}


@pytest.mark.parametrize('kind', ['base', 'async_subprocess'])
@pytest.mark.parametrize(
    'rows',
    [
        {'data_preprocess': prepare},
        {'forward': forward},
        {'data_postprocess': finish},
        {'process_transition': transition},
        {'data_preprocess': prepare, 'data_postprocess': finish},
        {'data_preprocess': prepare, 'forward': forward, 'data_postprocess': finish, 'process_transition': transition},
    ],
)
def test_each_hook_may_be_in_rows(collect, rows, kind):
    data = collect(Hooks().collect_mode(**rows), kind=kind)
    assert isinstance(data, Batch) and len(set(check_rows(data)[0])) == 20
    assert all(isinstance(column, np.ndarray) for column in data.values())


def test_the_eval_hooks_may_be_in_rows(tmp_path):
    hooks = Hooks()
    hooks.preprocess, hooks.forward, hooks.postprocess = prepare, forward, finish
    evaluator = BaseSerialEvaluator({'n_episode': 2}, str(tmp_path))
    evaluator.env = create_env_manager('base', fakes.CounterEnv, [{'tag': 0, 'length': 3}, {'tag': 1, 'length': 3}])
    evaluator.env.launch()
    evaluator.policy = hooks.eval_mode()
    assert evaluator.evaluate().lengths.tolist() == [3, 3]
    evaluator.close()


class OwnTransition(DQNPolicy):
    """A DQN of which only the transition is somebody's own, in the documented form."""

    def _process_transition(self, obs, armor_output, timestep):
        action = armor_output['action']
        assert isinstance(action, list) and [head.dim() for head in action] == [0, 0]
        return {'obs': obs, 'next_obs': timestep.obs, 'action': action, **step_of(timestep)}


def test_several_action_heads_reach_a_row_hook_as_a_list_and_the_learner_as_columns(collect, tmp_path):
    model = dict(obs_dim=6, action_dim=[2, 3], hidden_dim_list=[8])
    policy = OwnTransition(dict(model=model, learn=dict(batch_size=8)))
    policy.set_setting('collect', {'eps': 0.5})
    data = collect(policy.collect_mode, SwitchesEnv, [{}, {}], n_sample=16)
    assert data['action'].shape == (16, 2) and data['action'].dtype == np.int64
    buffer = BufferManager({'meta_maxlen': 32})
    buffer.push_data(data)
    assert torch.isfinite(policy._forward_learn(policy._data_preprocess_learn(buffer.sample(8)))['total_loss'])


def test_a_reward_that_becomes_a_fraction_is_not_cut_to_a_whole_number(collect):
    def halved(obs, output, timestep):
        step = int(timestep.obs[2])
        return {**transition(obs, output, timestep), 'reward': step if step == 1 else step / 2}

    data = collect(Hooks().collect_mode(process_transition=halved), traj_len=3)
    steps = data['next_obs'][:, 2]
    assert (data['reward'] == np.where(steps == 1, steps, steps / 2)).all()


class Memory:
    """A forward whose states are None at first, and then the tag of the env and how often it was asked."""

    def __init__(self):
        self.states = {}

    def __call__(self, data_id, data):
        tags, before = data['obs'][:, 0], [self.states.get(int(i)) for i in data_id]
        for i, tag, state in zip(data_id, tags, before):
            asked = torch.zeros(()) if state is None else state[1]
            self.states[int(i)] = (tag.clone(), asked + 1)
        return {'action': (data['obs'][:, 2] % 2).long(), 'prev_state': before}


@pytest.mark.parametrize('kind', ['base', 'async_subprocess'])
def test_recurrent_states_reach_a_row_hook_as_they_were(collect, kind):
    seen = []

    def remembered(obs, output, timestep):
        state = output['prev_state']
        assert state is None or (isinstance(state, tuple) and all(map(torch.is_tensor, state)))
        seen.append((int(obs[0]), None if state is None else (int(state[0]), int(state[1]))))
        return transition(obs, output, timestep)

    check_rows(collect(Hooks().collect_mode(forward=Memory(), process_transition=remembered), kind=kind))
    for tag in (0, 1):
        states = [state for env, state in seen if env == tag]
        assert states == [None, *((tag, asked) for asked in range(1, len(states)))]


# ---- wrong hooks
def test_a_transition_that_is_none_names_the_hook_and_the_remedy(collect):
    class Forgot(DQNPolicy):
        def _process_transition(self, obs, armor_output, timestep):
            made = {'obs': obs}
            made['next_obs'] = timestep.obs

    policy = Forgot(dict(model=dict(obs_dim=6, action_dim=[2, 3])), enable_field=['collect'])
    policy.set_setting('collect', {'eps': 0.5})
    with pytest.raises(TypeError, match=r'Forgot._process_transition returned None; it must return a dict.*return t'):
        collect(policy.collect_mode, SwitchesEnv, [{}, {}])


@pytest.mark.parametrize('name', ['next_obs', 'done', 'reward'])
@pytest.mark.parametrize('nstep', [1, 3])
def test_a_transition_without_a_column_that_is_needed_names_the_reader(collect, tmp_path, name, nstep):
    class Forgot(DQNPolicy):
        def _process_transition(self, obs, armor_output, timestep):
            made = super()._process_transition(obs, armor_output, timestep)
            return {key: value for key, value in made.items() if key != name}

    cfg = dict(model=dict(obs_dim=6, action_dim=[2, 3]), learn=dict(batch_size=4, algo=dict(nstep=nstep)))
    policy = Forgot({**cfg, 'collect': dict(algo=dict(nstep=nstep))})
    policy.set_setting('collect', {'eps': 0.5})
    learner = BaseLearner({}, exp_name=str(tmp_path))
    learner.policy = policy.learn_mode
    with pytest.raises(
        KeyError, match=rf"Forgot.* asks for '{name}', which is none of .* _process_transition must return it"
    ):
        buffer = BufferManager({'meta_maxlen': 32})
        buffer.push_data(collect(policy.collect_mode, SwitchesEnv, [{}, {}], traj_len=4))
        learner.train(buffer.sample(4))


def test_columns_that_come_and_go_are_refused(collect):
    def sometimes(obs, output, timestep):
        return {**transition(obs, output, timestep), **({'bonus': 1.0} if timestep.obs[2] > 2 else {})}

    with pytest.raises(ValueError, match="'bonus' must be there always or never"):
        collect(Hooks().collect_mode(process_transition=sometimes), cfgs=[{'tag': 0, 'length': 5}], traj_len=4)


@pytest.mark.parametrize('junk', [5, [1, 2], 'rows', {'obs': 1}])
def test_training_samples_that_are_none_name_the_hook_and_the_rule(collect, junk):
    def _get_train_sample(cache):
        cache.clear()
        return junk

    with pytest.raises(TypeError, match=r'_get_train_sample returned .* must return a list of training samples'):
        collect(Hooks().collect_mode(get_train_sample=_get_train_sample))


def test_a_marked_sampler_answers_a_batch(collect):
    class Rows(DQNPolicy):
        def _junk(self, traj_cache):
            return [1]

        _junk.__nervex_batched__ = True
        _get_train_sample = _junk

    policy = Rows(dict(model=dict(obs_dim=6, action_dim=[2, 3])), enable_field=['collect'])
    policy.set_setting('collect', {'eps': 0.5})
    with pytest.raises(TypeError, match='returned a list for a Batch of steps'):
        collect(policy.collect_mode, SwitchesEnv, [{}, {}])


def test_a_postprocess_that_answers_columns_without_the_mark_is_told_so(collect):
    with pytest.raises(TypeError, match=r'answered the keys \[.action.\].*Mark it with @batched'):
        collect(Hooks().collect_mode(data_postprocess=lambda data_id, output: output))


def test_sequences_of_a_row_policy_reach_the_learner_with_one_stamp_each(collect):
    """Rows cut by ``Adder.get_train_sample``: lists of steps, as the documented recurrent policies have them."""
    from nervex.rl_utils import Adder

    adder = Adder(unroll_len=2)

    def sample(cache):
        return adder.get_train_sample(adder.get_traj(cache, 4))

    data = collect(Hooks().collect_mode(process_transition=transition, get_train_sample=sample), traj_len=4, n_sample=6)
    assert len(data) == 6 and data['collect_iter'].tolist() == [0] * 6
    assert all(isinstance(row['obs'], list) and len(row['obs']) == 2 for row in data)
    buffer = BufferManager({'meta_maxlen': 32})
    buffer.push_data(data)
    assert len(buffer.sample(4)) == 4


def test_a_policy_of_the_registry_runs_with_every_hook_in_rows(collect):
    class ByRows(DQNPolicy):
        def _data_preprocess_collect(self, data):
            return super()._data_preprocess_collect(data)

        def _forward_collect(self, data_id, data):
            assert torch.is_tensor(data['obs'])
            return super()._forward_collect(data_id, data)

        def _data_postprocess_collect(self, data_id, output):
            said = super()._data_postprocess_collect(data_id, output)
            return {i: {'action': [head[k] for head in said['action']]} for k, i in enumerate(data_id)}

        def _process_transition(self, obs, armor_output, timestep):
            return super()._process_transition(obs, armor_output, timestep)

        def _get_train_sample(self, traj_cache):
            return super()._get_train_sample(traj_cache)

    def data(cls):
        torch.manual_seed(0)
        policy = cls(dict(model=dict(obs_dim=6, action_dim=[2, 3])), enable_field=['collect'])
        policy.set_setting('collect', {'eps': 0.5})
        return collect(policy.collect_mode, SwitchesEnv, [{}, {}])

    rows, columns = data(ByRows), data(DQNPolicy)
    for name in ('obs', 'next_obs', 'action', 'done'):
        assert np.array_equal(rows[name], columns[name]) and rows[name].dtype == columns[name].dtype
