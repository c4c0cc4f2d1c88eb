"""What a policy says it logs reaches TensorBoard, and a loss that is not finite stops the run, whatever computes it."""

import copy
import re
from pathlib import Path

import numpy as np
import pytest

from nervex.policy.tests.learning import train
from nervex.policy.tests.test_combinations import KINDS, kinds_of
from nervex.policy.tests.test_combinations import NAMES as EVERYONE
from nervex.utils import POLICY_REGISTRY, TrainingError, tree
from nervex.utils.class_config import merge_config
from nervex.utils.tests.test_log_helper import read_events

VALUE = {'cur_lr', 'total_loss', 'q_value', 'grad_norm'}
PPO = {'cur_lr', 'total_loss', 'policy_loss', 'value_loss', 'entropy_loss', 'approx_kl', 'clipfrac', 'grad_norm'}
CRITIC = {
    'cur_lr_actor',
    'cur_lr_critic',
    'critic_loss',
    'actor_loss',
    'q_value',
    'critic_grad_norm',
    'actor_grad_norm',
}
SAC = CRITIC | {'entropy', 'alpha', 'alpha_loss'}
#: policy -> what a person who watches needs at least
WANTED = {
    **dict.fromkeys(['dqn', 'dqn_vanilla', 'rainbow_dqn', 'qrdqn', 'r2d2'], VALUE),
    **dict.fromkeys(['qmix', 'vdn', 'iql'], VALUE),
    'coma': {'cur_lr', 'total_loss', 'policy_loss', 'value_loss', 'entropy_loss', 'q_value', 'grad_norm'},
    'collaQ': VALUE | {'colla_alone_loss'},
    'atoc': CRITIC | {'attention_loss', 'initiators', 'delta_q'},
    'sqn': VALUE | {'entropy', 'alpha'},
    'cql': VALUE | {'td_loss', 'cql_loss'},
    'il': {'cur_lr', 'total_loss', 'accuracy', 'entropy', 'grad_norm'},
    'a2c': PPO - {'approx_kl', 'clipfrac'},
    **dict.fromkeys(['ppo', 'ppo_vanilla', 'ppo_recurrent', 'impala', 'mappo', 'ippo'], PPO),
    'ppg': PPO | {'value_grad_norm', 'aux_value_loss', 'auxiliary_loss', 'behavioral_cloning_loss'},
    **dict.fromkeys(['ddpg', 'td3', 'maddpg', 'matd3'], CRITIC),
    'td3_bc': CRITIC | {'bc_loss'},
    **dict.fromkeys(['sac', 'sac_discrete', 'droq', 'tqc', 'crossq'], SAC),
    'cql_continuous': SAC | {'td_loss', 'cql_loss'},
    'implicit_q': CRITIC | {'value_loss', 'value', 'weight', 'entropy'},
}
NAMES = [name for name in EVERYONE if kinds_of(POLICY_REGISTRY.get(name))[0] in KINDS]  # games: test_alphazero
FEW = dict(
    learner=dict(hook=dict(log_show=dict(ext_args=dict(freq=1)))),
    evaluator=dict(n_episode=1, eval_freq=1000),
    actor=dict(n_sample=32),
)


def settings(name, **more):
    cfg = merge_config(copy.deepcopy(FEW), dict(policy={}))
    if name == 'ppg':
        cfg = merge_config(cfg, dict(policy=dict(learn=dict(aux_freq=2, epochs_aux=1))))
    if name == 'droq':
        cfg = merge_config(cfg, dict(policy=dict(learn=dict(algo=dict(actor_update_freq=1)))))
    return merge_config(cfg, more)


@pytest.mark.parametrize('name', NAMES)
def test_everything_that_is_monitored_reaches_tensorboard(name):
    cls = POLICY_REGISTRY.get(name)
    train(name, KINDS[kinds_of(cls)[0]], settings(name, commander=dict(max_train_iter=4)))
    values = {(value.tag, step): value.simple_value for value, step in read_events('log/learner')}
    assert all(np.isfinite(number) for number in values.values())
    tags = {tag.removeprefix('learner_iter/') for tag, _ in values if tag.startswith('learner_iter/')}
    assert tags >= WANTED[name]
    assert tags >= {tag.removeprefix('learner_envstep/') for tag, _ in values if tag.startswith('learner_envstep/')}
    assert ('learner_iter/' + sorted(WANTED[name])[0], 4) in values
    monitored = set(cls._monitor_vars_learn(cls.__new__(cls)))
    assert tags >= monitored, f'monitored, but never logged: {monitored - tags}'


def poisoned(cls):
    """The same policy, whose 25th batch is no numbers."""

    class Poisoned(cls):
        _batches = 0

        def _data_preprocess_learn(self, data):
            out = super()._data_preprocess_learn(data)
            self._batches += 1
            if self._batches == 25:
                for part in out.values() if 'policy' in out else [out]:
                    part['obs'] = tree.map(lambda x: x * float('nan'), part['obs'])
            return out

    return Poisoned


BY_HAND = ('dqn_vanilla', 'ppo_vanilla')  # their updates are plain torch
RECURRENT = ('r2d2', 'ppo_recurrent')  # theirs cannot be recorded
BACKENDS = [(name, 'off') for name in NAMES] + [(name, 'ts') for name in NAMES if name not in BY_HAND + RECURRENT]


@pytest.mark.parametrize('name, graph', BACKENDS)
def test_a_loss_that_is_no_number_stops_the_run_with_iteration_variable_and_last_good_checkpoint(name, graph):
    cls = POLICY_REGISTRY.get(name)
    hooks = dict(log_show=dict(ext_args=dict(freq=10)), save_ckpt_after_iter=10)
    more = dict(learner=dict(hook=hooks), commander=dict(max_train_iter=100))
    cfg = settings(name, policy=dict(learn=dict(graph=graph, init_data_count=32)), **more)
    with pytest.raises(TrainingError) as error:
        train(poisoned(cls), KINDS[kinds_of(cls)[0]], cfg)
    found = re.search(r'iteration (\d+): (\w+) is nan.* Last checkpoint: (\S+)\. ', str(error.value))
    assert found, error.value
    assert found[1] == '25' and found[2] in cls._monitor_vars_learn(cls.__new__(cls))
    assert Path(found[3]).exists() and found[3].endswith('iteration_20.pth.tar')
