"""What a policy can ask in its hooks: what it is in, and the importance weight of every row."""

import torch

from nervex.data import BufferManager
from nervex.model import FCDiscreteNet
from nervex.policy.dqn import DQNPolicy
from nervex.worker import BaseLearner

ROW = dict(obs=torch.zeros(3), next_obs=torch.ones(3), action=torch.tensor(1), reward=torch.ones(1), done=False)


class Asking(DQNPolicy):
    """Notes what it is told."""

    def _note(self):
        self.seen.append((self.training, self.updating))

    def _forward_learn(self, data):
        self._note()
        self.weights = data['IS']
        return super()._forward_learn(data)

    def _forward_collect(self, data_id, data):
        self._note()
        return super()._forward_collect(data_id, data)

    def _forward_eval(self, data_id, data):
        self._note()
        return super()._forward_eval(data_id, data)


def asking(model_class=FCDiscreteNet, **cfg):
    policy = Asking(dict(model=dict(obs_dim=3, action_dim=2), **cfg), model=model_class)
    policy.seen, policy._eps = [], 0.1
    return policy


def batch(policy, use_priority=False):
    buffer = BufferManager({'meta_maxlen': 8}, use_priority=use_priority)
    buffer.start()
    buffer.push_data([dict(ROW, collect_iter=0) for _ in range(8)])
    return next(iter(buffer.batches(4, 1, 0)))


def test_a_policy_knows_whether_it_collects_updates_or_is_tested():
    policy, obs = asking(), {'obs': torch.zeros(1, 3)}
    policy.collect_mode.forward([0], obs)
    policy.learn_mode.forward(policy.learn_mode.data_preprocess(batch(policy)))
    assert not policy.updating
    policy.eval_mode.forward([0], obs)
    assert policy.seen == [(True, False), (True, True), (False, False)]


class Layered(FCDiscreteNet):
    """With layers that differ in training; it counts the rows that they normalise."""

    def __init__(self, obs_dim, action_dim):
        super().__init__(obs_dim, action_dim)
        self.before = torch.nn.Sequential(torch.nn.BatchNorm1d(obs_dim), torch.nn.Dropout(0.5))

    def forward(self, data):
        return super().forward({'obs': self.before(data['obs'])})


def test_dropout_and_batch_norm_are_in_training_in_updates_only():
    policy, obs = asking(model_class=Layered), {'obs': torch.randn(1, 3)}
    policy._eps = 0.0
    norm, _ = policy._model.before
    first = policy.eval_mode.forward([0], obs)['logit']
    assert first.abs().sum() > 0  # BatchNorm of one row by that row would be an error, Dropout would change it
    for mode in (policy.eval_mode, policy.collect_mode):
        assert torch.equal(mode.forward([0], obs)['logit'], first) and norm.num_batches_tracked == 0
    policy.learn_mode.forward(policy.learn_mode.data_preprocess(batch(policy)))
    assert norm.num_batches_tracked > 0
    updated = norm.running_var.clone()
    again = [policy.eval_mode.forward([0], obs)['logit'] for _ in range(2)]
    assert torch.equal(*again) and torch.equal(norm.running_var, updated)


def test_every_row_has_an_importance_weight():
    for use_priority in (False, True):
        policy = asking(use_priority=use_priority)
        data = policy.learn_mode.data_preprocess(batch(policy, use_priority))
        assert data['IS'].tolist() == [1.0] * 4 and (data['weight'] is not None) == use_priority
        policy.learn_mode.forward(data)
        assert policy.weights.tolist() == [1.0] * 4
    assert policy.learn_mode.data_preprocess([ROW, ROW])['IS'].tolist() == [1.0, 1.0]


def test_the_learner_tells_when_it_is_done(tmp_path):
    learner, policy = BaseLearner(exp_name=str(tmp_path)), asking()
    learner.policy = policy.learn_mode
    learner.begin()
    learner.train(batch(policy))
    assert learner.learn_info['learner_done'] is False
    learner.call_hook('after_run')
    assert learner.learn_info['learner_done'] is True
    learner.close()
