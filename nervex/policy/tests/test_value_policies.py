"""Every policy of action values: it learns a problem of a few states, and a broken version of it does not."""

import copy

import pytest
import torch

from nervex.policy import check_batched, create_policy
from nervex.policy.tests.learning import by_rows, no_bootstrap, train, wrong_sign
from nervex.policy.tests.toy_envs import ForbiddenEnv, SwitchesEnv, TemptationEnv
from nervex.utils import POLICY_REGISTRY, ConfigError
from nervex.utils.class_config import merge_config
from nervex.worker.actor.env_manager import create_env_manager

EPS = dict(command=dict(eps=dict(start=1.0, end=0.3, decay=200)))
C51 = dict(model=dict(v_min=-1.0, v_max=2.0, n_atom=31))
#: policy -> what differs from the defaults in its proof
PROOFS = {
    'dqn_vanilla': dict(policy=EPS),
    'rainbow_dqn': dict(policy=dict(**EPS, **C51)),
    'rainbow_dqn iqn': dict(policy=dict(**EPS, use_iqn=True, model=dict(num_quantiles=8))),
    'qrdqn': dict(policy=EPS),
    'sqn': dict(policy=dict(learn=dict(train_step=4, algo=dict(target_theta=0.02, target_entropy=0.1)))),
}
PROOFS['r2d2'] = dict(
    policy=dict(**EPS, learn=dict(algo=dict(nstep=1)), collect=dict(unroll_len=6, traj_len=6)), actor=dict(n_sample=4)
)
SEVERAL_HEADS = MASKS = [name for name in PROOFS if name != 'dqn_vanilla']


def proof(name):
    return name.split()[0], copy.deepcopy(PROOFS[name])


@pytest.mark.parametrize('name', PROOFS)
def test_learns_to_resist_temptation(name):
    policy, cfg = proof(name)
    assert train(policy, TemptationEnv, cfg).final_return == 1


@pytest.mark.slow
@pytest.mark.parametrize('broken', [wrong_sign, no_bootstrap])
@pytest.mark.parametrize('name', PROOFS)
def test_the_proof_fails_for_a_broken_loss(name, broken):
    policy, cfg = proof(name)
    cls = POLICY_REGISTRY.get(policy)
    if policy == 'r2d2' and broken is no_bootstrap:  # its sequences know by themselves where an episode ends
        cfg['policy']['learn']['algo']['discount_factor'] = 0.0
    else:
        cls = broken(cls)
    assert train(cls, TemptationEnv, cfg).final_return < 0.5


@pytest.mark.parametrize('name', SEVERAL_HEADS)
def test_learns_two_action_heads(name):
    policy, cfg = proof(name)
    assert train(policy, SwitchesEnv, cfg).final_return >= 1.9


@pytest.mark.parametrize('name', MASKS)
def test_learns_under_action_masks_and_never_breaks_them(name):
    policy, cfg = proof(name)
    assert train(policy, ForbiddenEnv, cfg).final_return == 0


@pytest.mark.parametrize('name', PROOFS)
@pytest.mark.parametrize('env, dims', [(TemptationEnv, (5, 2)), (SwitchesEnv, (6, [2, 3]))])
def test_both_forms_of_transitions_and_samples_agree(name, env, dims):
    policy_type, cfg = proof(name)
    if env is SwitchesEnv and name not in SEVERAL_HEADS:
        pytest.skip('one action head only')
    manager = create_env_manager('base', env, [{}] * 3, {})
    manager.seed(0)
    sizes = dict(model=dict(obs_dim=dims[0], action_dim=dims[1]), collect=dict(env_num=3))
    policy = create_policy({**merge_config(cfg['policy'], sizes), 'policy_type': policy_type}, enable_field=['collect'])
    if 'eps' in policy._collect_setting_set:
        policy.set_setting('collect', {'eps': 0.5})
    with manager:
        manager.launch()
        assert check_batched(policy, manager, steps=40) == 120


@pytest.mark.parametrize('name', [*PROOFS, 'dqn'])
def test_runs_in_the_documented_row_form_with_dict_observations(name):
    policy, cfg = proof(name) if name in PROOFS else (name, dict(policy=EPS))
    if policy == 'dqn_vanilla':
        pytest.skip('takes plain observations only')
    cfg = merge_config(cfg, dict(commander=dict(max_env_step=200), evaluator=dict(n_episode=4)))
    result = train(by_rows(POLICY_REGISTRY.get(policy)), ForbiddenEnv, cfg)
    assert result.train_iters > 10


@pytest.mark.parametrize(
    'policy, settings, path',
    [
        ('dqn', dict(use_priority=True, on_policy=True), 'policy.use_priority'),
        ('dqn', dict(collect=dict(algo=dict(first_priority=True))), 'policy.collect.algo.first_priority'),
        ('r2d2', dict(learn=dict(algo=dict(nstep=7)), collect=dict(unroll_len=6)), 'policy.learn.algo.nstep'),
        ('r2d2', dict(collect=dict(unroll_len=40)), 'policy.collect.unroll_len'),
        ('dqn_vanilla', dict(learn=dict(algo=dict(nstep=3))), 'policy.learn.algo.nstep'),
        ('rainbow_dqn', dict(learn=dict(algo=dict(kappa=-1.0))), 'policy.learn.algo.kappa'),
        ('qrdqn', dict(learn=dict(algo=dict(tau=8))), 'policy.learn.algo.tau'),
        ('sqn', dict(learn=dict(algo=dict(alpha=0.0))), 'policy.learn.algo.alpha'),
    ],
)
def test_settings_that_make_no_sense_are_told_with_their_path(policy, settings, path):
    with pytest.raises(ConfigError) as error:
        train(policy, TemptationEnv, dict(policy=settings))
    assert path in str(error.value)


def test_actors_of_sqn_get_the_temperature_with_the_weights():
    cfg = dict(model=dict(obs_dim=3, action_dim=2))
    learner, actor = (POLICY_REGISTRY.get('sqn')(cfg, enable_field=[mode]) for mode in ('learn', 'collect'))
    with torch.no_grad():
        learner._temperature.log_alpha.fill_(-3.0)
    actor.collect_mode.load_state_dict(learner._state_dict_collect())
    assert actor._temperature().item() == learner._temperature().item()
