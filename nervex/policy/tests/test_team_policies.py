"""Teams: losses against references in plain loops, what a policy finds in small games, memories and what is refused."""

import itertools

import numpy as np
import pytest
import torch

from app_zoo.team_games.envs import TwoStepGame
from nervex.data import Batch
from nervex.envs import EnvElementInfo
from nervex.model import create_model
from nervex.model.team import ValueScale
from nervex.policy import create_policy
from nervex.policy.qmix import further
from nervex.policy.tests.learning import train, wrong_sign
from nervex.policy.tests.toy_envs import AimEnv, PairEnv, RecallEnv, TemptationEnv, box
from nervex.policy.traj_block import TrajBlock
from nervex.utils import POLICY_REGISTRY, ConfigError

T, B, A, N = 4, 3, 2, 3
SIZES = dict(agent_num=A, obs_dim=3, global_obs_dim=6, action_dim=N, hidden_dim_list=[8])


def batch(seed=0, each=False, alive=False):
    """
    Sequences of 4, 2 and 1 real steps: the first is cut by its window, the others end. With ``alive`` an agent of the
    first leaves after two steps, and one of the second never plays.
    """
    rng = np.random.default_rng(seed)
    mask = np.arange(T) < np.array([4, 2, 1])[:, None]
    done = ~mask
    done[1, 1] = done[2, 0] = True
    legal = np.ones((B, T + 1, A, N), np.float32)
    legal[..., 2] = rng.integers(0, 2, (B, T + 1, A))
    playing = np.ones((B, T + 1, A), np.float32)
    playing[0, 2:, 1] = playing[1, :, 0] = 0
    return Batch(
        dict(
            obs=dict(
                agent_state=rng.normal(size=(B, T + 1, A, 3)).astype(np.float32),
                global_state=rng.normal(size=(B, T + 1, 6)).astype(np.float32),
                action_mask=legal,
                **({'agent_alive': playing} if alive else {}),
            ),
            action=rng.integers(0, 2, (B, T, A)),
            reward=rng.normal(size=(B, T, A) if each else (B, T)).astype(np.float32),
            done=done,
            truncated=np.zeros_like(done),
            mask=mask,
            prev_state=rng.normal(size=(B, A, 8)).astype(np.float32),
        )
    )


def values_of_qmix(net, obs, state):
    return net.agent_net(obs['agent_state'], state)[0]


def reference(policy, data, joint, each_reward, double_q=True, gamma=0.99, values=values_of_qmix, td_lambda=0.0):
    """The mean squared error over the real steps, in loops over rows and, from the last one on, steps."""
    model, target, total, count = policy._armor.model, policy._armor.target_model, 0.0, 0
    for row in range(B):
        obs = {name: torch.as_tensor(part[row])[:, None] for name, part in data['obs'].items()}
        state = torch.as_tensor(data['prev_state'][row])[None]
        q, q_target = (values(net, obs, state)[:, 0] for net in (model, target))
        later, there = torch.zeros(()), torch.zeros(A, dtype=torch.bool)  # the target behind a step, and who has one
        for t in reversed(range(T)):
            if not data['mask'][row, t]:
                continue
            taken = torch.stack([q[t, a, data['action'][row, t, a]] for a in range(A)])
            chooser = q if double_q else q_target
            best = [
                max(
                    (k for k in range(N) if data['obs']['action_mask'][row, t + 1, a, k]),
                    key=lambda k: chooser[t + 1, a, k].item(),
                )
                for a in range(A)
            ]
            following = torch.stack([q_target[t + 1, a, best[a]] for a in range(A)])
            states = [torch.as_tensor(data['obs']['global_state'][row, k]) for k in (t, t + 1)]
            alive = torch.as_tensor(data['obs'].get('agent_alive', np.ones((B, T + 1, A)))[row]) > 0
            if joint is JOINTS['iql']:
                rest = 0.0 if each_reward else following[alive[t + 1]].mean().item()
                following = torch.stack([following[a] if alive[t + 1, a] else torch.tensor(rest) for a in range(A)])
            else:
                taken, following = taken * alive[t], following * alive[t + 1]
            reward = torch.as_tensor(data['reward'][row, t])
            goes_on = 0.0 if data['done'][row, t] else gamma
            behind = joint(target, following, states[1])
            seen = there if behind.dim() else there.any()
            behind = torch.where(seen, (1 - td_lambda) * behind + td_lambda * later, behind)
            goal = (reward if each_reward else reward.sum()) + goes_on * behind
            later, there = goal, alive[t] if behind.dim() else torch.ones(A, dtype=torch.bool)
            error = goal - joint(model, taken, states[0])
            error = error[alive[t]] if joint is JOINTS['iql'] else error
            total, count = total + error.pow(2).sum().item(), count + error.numel()
    return total / count


JOINTS = {
    'qmix': lambda model, q, state: model.mixer(q, state),
    'vdn': lambda model, q, state: q.sum(),
    'iql': lambda model, q, state: q,
}


@pytest.mark.parametrize('alive', [False, True], ids=['all alive', 'some leave'])
@pytest.mark.parametrize('each', [False, True], ids=['reward of the team', 'reward of each'])
@pytest.mark.parametrize('double_q', [True, False])
@pytest.mark.parametrize('td_lambda', [0.0, 0.6, 1.0])
@pytest.mark.parametrize('name', JOINTS)
def test_the_loss_equals_a_reference_in_loops(name, td_lambda, double_q, each, alive):
    torch.manual_seed(1)
    learn = dict(algo=dict(double_q=double_q, td_lambda=td_lambda))
    policy = create_policy(dict(policy_type=name, model=dict(SIZES), learn=learn), enable_field=['learn'])
    for parameter in policy._armor.target_model.parameters():
        parameter.data.mul_(1.3)  # the target net is another one
    data = batch(each=each, alive=alive)
    loss, info = policy._loss(policy._data_preprocess_learn(data))
    expected = reference(policy, data.to_numpy(), JOINTS[name], name == 'iql' and each, double_q, td_lambda=td_lambda)
    assert loss.item() == pytest.approx(expected, rel=1e-4)
    assert info['td_error'].shape == (B,)


@pytest.mark.parametrize('name', [*JOINTS, 'mappo', 'ippo'])
def test_padding_and_agents_that_have_left_have_no_part_in_the_loss(name):
    policy = create_policy(dict(policy_type=name, model={**SIZES, 'lstm_type': None}), enable_field=['learn'])
    same_loss_and_gradients(policy, name)


def test_nor_in_what_a_central_critic_sees_where_there_is_no_global_state():
    model = {**SIZES, 'global_obs_dim': None, 'lstm_type': None}
    policy = create_policy(dict(policy_type='mappo', model=model), enable_field=['learn'])
    same_loss_and_gradients(policy, 'mappo', without=['global_state'])


def same_loss_and_gradients(policy, name, without=()):
    data, changed = (on_policy(batch(alive=True)) if name in ('mappo', 'ippo') else batch(alive=True) for _ in range(2))
    for given, key in itertools.product((data, changed), without):
        del given['obs'][key]
    gone = data['obs']['agent_alive'] == 0
    changed['obs']['agent_state'][gone] = 7.0
    for key in ('action', 'reward', 'value', 'adv', 'return_', 'logit'):
        if key in changed:
            changed[key][~data['mask']] = 1 if key == 'action' else 1e3
            if key != 'reward':
                changed[key][gone[:, :T] & data['mask'][..., None]] = 1
    found = []
    for given in (data, changed):
        loss, _ = policy._loss(policy._data_preprocess_learn(given))
        found.append([loss, *torch.autograd.grad(loss, list(policy._model.parameters()), materialize_grads=True)])
    assert all(torch.equal(one, other) for one, other in zip(*found)) and found[0][0].isfinite()


def test_targets_that_look_further_along_the_steps_by_hand():
    next_value = torch.tensor([[2.0], [4.0], [8.0]])
    goes_on = torch.tensor([[0.5], [0.5], [0.0]])
    goal = torch.ones(3, 1) + goes_on * next_value  # 2, 3, 1
    whole, cut = torch.tensor([[True], [True], [True]]), torch.tensor([[True], [True], [False]])
    # 1 + 0.5 (0.75 * 4 + 0.25 * 1) = 2.625; 1 + 0.5 (0.75 * 2 + 0.25 * 2.625) = 2.078125
    assert further(goal, next_value, goes_on, whole, 0.25).flatten().tolist() == [2.078125, 2.625, 1.0]
    # 1 + 0.5 * 4 = 3; 1 + 0.5 (0.75 * 2 + 0.25 * 3) = 2.125
    assert further(goal, next_value, goes_on, cut, 0.25).flatten().tolist()[:2] == [2.125, 3.0]


def on_policy(data, seed=3):
    """With what PPO stores, and without what follows the last step."""
    rng, given = np.random.default_rng(seed), dict(data.to_numpy())
    given['obs'] = {key: part[:, :-1] for key, part in given['obs'].items()}
    kept = {key: given[key] for key in ('obs', 'action', 'mask')}
    numbers = {key: rng.normal(size=(B, T, A)).astype(np.float32) for key in ('value', 'adv', 'return_')}
    return Batch({**kept, **numbers, 'logit': rng.normal(size=(B, T, A, N)).astype(np.float32)})


def test_standardised_rewards_are_those_of_the_real_steps_less_their_mean():
    learn = dict(algo=dict(standardise_rewards=True))
    policy = create_policy(dict(policy_type='qmix', model=dict(SIZES), learn=learn), enable_field=['learn'])
    plain = create_policy(dict(policy_type='qmix', model=dict(SIZES)), enable_field=['learn'])
    plain._model.load_state_dict(policy._model.state_dict())
    plain._armor.target_model.load_state_dict(policy._armor.target_model.state_dict())
    data, scaled = batch(), batch()
    real = data['reward'][data['mask']]
    scaled['reward'] = (data['reward'] - real.mean()) / real.std()
    expected = plain._loss(plain._data_preprocess_learn(scaled))[0].item()
    assert policy._forward_learn(policy._data_preprocess_learn(data))['total_loss'].item() == pytest.approx(expected)
    again = create_policy(dict(policy_type='qmix', model=dict(SIZES), learn=learn), enable_field=['learn'])
    again.learn_mode.load_state_dict(policy.learn_mode.state_dict())
    assert torch.equal(again._reward_scale.mean, policy._reward_scale.mean) and again._reward_scale.mean != 0


TWO_STEP = dict(
    policy=dict(
        model=dict(hidden_dim_list=[32], lstm_type=None),
        learn=dict(train_step=8, batch_size=32, algo=dict(target_update_freq=50)),
        collect=dict(unroll_len=2, traj_len='inf'),
        command=dict(eps=dict(type='linear', start=1.0, end=1.0, decay=1)),
    ),
    actor=dict(n_episode=8),
    evaluator=dict(n_episode=4, eval_freq=100000),
    commander=dict(max_train_iter=2000),
)


@pytest.mark.parametrize('name, value', [('qmix', 8.0), ('vdn', 7.0)])
def test_only_a_mixer_finds_the_best_play_of_the_two_step_game(name, value):
    assert train(name, TwoStepGame, TWO_STEP).final_return == value


ON_POLICY = dict(
    policy=dict(learn=dict(batch_size=16, epochs=4), collect=dict(unroll_len=2, traj_len='inf')),
    actor=dict(n_episode=32),
    evaluator=dict(n_episode=20, eval_freq=100, stop_val=1.9),
    commander=dict(max_env_step=12000),
)
OFF_POLICY = dict(
    policy=dict(
        learn=dict(train_step=8, batch_size=32, algo=dict(target_update_freq=50)),
        collect=dict(unroll_len=2, traj_len='inf'),
        command=dict(eps=dict(type='linear', start=1.0, end=0.1, decay=2000)),
    ),
    actor=dict(n_episode=8),
    evaluator=dict(n_episode=20, eval_freq=200, stop_val=1.9),
    commander=dict(max_env_step=6000),
)
HOW = {**dict.fromkeys(JOINTS, OFF_POLICY), 'mappo': ON_POLICY, 'ippo': ON_POLICY}


@pytest.mark.parametrize('memory', [None, 'gru', 'lstm'])
@pytest.mark.parametrize('name', HOW)
def test_it_learns_with_and_without_a_memory_and_never_takes_what_is_forbidden(name, memory):
    cfg = {**HOW[name], 'policy': {**HOW[name]['policy'], 'model': dict(hidden_dim_list=[32], lstm_type=memory)}}
    assert train(name, PairEnv, cfg).solved


@pytest.mark.parametrize('name, solved', [('qmix', True), ('vdn', True), ('iql', True), ('forgetful', False)])
def test_what_was_seen_steps_ago_is_recalled_by_who_has_a_memory(name, solved):
    memory = None if name == 'forgetful' else 'gru'
    policy = {
        **OFF_POLICY['policy'],
        'model': dict(hidden_dim_list=[32], lstm_type=memory),
        'collect': dict(unroll_len=4, traj_len='inf'),
    }
    cfg = dict(evaluator=dict(n_episode=20, eval_freq=100, stop_val=1.0), commander=dict(max_env_step=4000))
    name = 'qmix' if memory is None else name
    assert train(name, RecallEnv, {**OFF_POLICY, **cfg, 'policy': policy}).solved == solved


@pytest.mark.parametrize('name', ['mappo', 'ippo'])
def test_a_loss_of_the_wrong_sign_learns_nothing(name):
    cfg = {**HOW[name], 'commander': dict(max_env_step=3000)}
    assert train(wrong_sign(POLICY_REGISTRY.get(name)), PairEnv, cfg).final_return < 1.2


def test_the_memory_of_an_env_is_kept_stored_and_forgotten():
    policy = create_policy(
        dict(policy_type='qmix', model=dict(SIZES), collect=dict(env_num=3)), enable_field=['collect']
    )
    policy.set_setting('collect', {'eps': 0.0})
    obs = {name: part[:, 0] for name, part in batch().to_numpy()['obs'].items()}

    def act(ids):
        return policy._forward_collect(ids, policy._model_input({name: part[ids] for name, part in obs.items()}))

    first, second = act([0, 1, 2]), act([0, 2])
    assert not first['prev_state'].any() and second['prev_state'].any(axis=(1, 2)).all()
    policy._reset_collect([2])
    third = act([0, 1, 2])
    assert not third['prev_state'][2].any() and third['prev_state'][:2].any(axis=(1, 2)).all()
    assert not np.array_equal(third['prev_state'][0], second['prev_state'][0])


def columns(**given):
    """As a Batch has them: nested ones are Batches, too."""
    return dict(Batch(given).items())


@pytest.mark.parametrize('each', [False, True])
def test_advantages_of_mappo_by_hand(each):
    """gamma 0.5, lambda 1: the last step has r - V, the one before r + 0.5 (r' ...) - V; each agent has its own."""
    learn = dict(algo=dict(discount_factor=0.5, gae_lambda=1.0))
    policy = create_policy(
        dict(policy_type='mappo', model=dict(SIZES), learn=learn, collect=dict(unroll_len=2)), enable_field=['collect']
    )
    reward = np.array([[1.0, 3.0], [2.0, 4.0]], np.float32)
    obs = {name: part[0, :2] for name, part in batch().to_numpy()['obs'].items()}
    traj = TrajBlock.cut(
        columns(
            obs=obs,
            next_obs=obs,
            action=np.zeros((2, A), np.int64),
            logit=np.zeros((2, A, N), np.float32),
            reward=reward if each else reward[:, 0],
            done=np.array([False, True]),
            truncated=np.array([False, False]),
            prev_state=np.zeros((2, A, 0), np.float32),
        ),
        0,
    )
    value = torch.tensor([[0.5, 1.0], [1.5, 2.0]])
    policy._values_behind = lambda traj, where, column='next_obs': value[where]
    sample = policy._get_train_sample(traj)
    second = reward[:, 1] if each else reward[:, 0]
    expected = [[1 + 0.5 * 2 - 0.5, second[0] + 0.5 * second[1] - 1.0], [2 - 1.5, second[1] - 2.0]]
    assert np.allclose(sample['adv'][0], expected) and np.allclose(sample['value'][0], value)
    assert np.allclose(sample['return_'][0], np.array(expected) + value.numpy())


@pytest.mark.parametrize('each', [False, True])
def test_what_follows_the_end_of_an_agent_by_hand(each):
    """
    gamma 0.5, lambda 0, and V is what an agent sees; the second agent leaves after the first step. The next state is
    worth 1.5 to the first, so to the second, too, if they share the reward, else nothing: 1 + 0.75 - 1, or 3 - 1. In
    the last step, cut by a time limit, it does not count, and what is behind it is worth 3 to both, or to the first.
    """
    learn = dict(algo=dict(discount_factor=0.5, gae_lambda=0.0))
    policy = create_policy(
        dict(policy_type='mappo', model=dict(SIZES), learn=learn, collect=dict(unroll_len=2)), enable_field=['collect']
    )
    policy._model = lambda given, mode: {'value': given['obs']['agent_state'].squeeze(-1)}
    seen = {
        'obs': ([[0.5, 1.0], [1.5, 70.0]], [[1, 1], [1, 0]]),
        'next_obs': ([[1.5, 70.0], [3.0, 80.0]], [[1, 0], [1, 0]]),
    }
    parts = {
        name: {'agent_state': np.array(state, np.float32)[..., None], 'agent_alive': np.array(alive, np.float32)}
        for name, (state, alive) in seen.items()
    }
    reward = np.array([[1.0, 3.0], [2.0, 0.0]], np.float32)
    reward, done = reward if each else reward[:, 0], np.array([False, True])
    rest = dict(action=np.zeros((2, A), np.int64), reward=reward, done=done, truncated=done)
    sample = policy._get_train_sample(TrajBlock.cut(columns(**parts, **rest), 0))
    first, last = [1 + 0.75 - 0.5, 3 - 1.0 if each else 1 + 0.75 - 1.0], 2 + 0.5 * 3.0 - 1.5
    assert np.allclose(sample['adv'][0], [first, [last, 0.0 if each else last]])


def test_the_scale_of_values_is_the_mean_and_deviation_of_the_returns():
    scale, rng = ValueScale(keep=0.9), torch.Generator().manual_seed(0)
    assert scale.outward(torch.tensor(2.0)) == 2.0  # before any return
    for _ in range(100):
        scale.update(torch.randn(1000, generator=rng) * 3 + 5)
    assert scale.outward(torch.tensor(0.0)).item() == pytest.approx(5, abs=0.2)
    assert (scale.outward(torch.tensor(1.0)) - 5).item() == pytest.approx(3, abs=0.2)
    assert scale.inward(scale.outward(torch.tensor(0.7))).item() == pytest.approx(0.7, abs=1e-5)


@pytest.mark.parametrize('name, memory', [('mappo', None), ('ippo', None), ('mappo', 'gru')])
def test_continuous_actions_of_a_team_are_learned(name, memory):
    ends = dict(evaluator=dict(n_episode=20, eval_freq=100, stop_val=-0.2), commander=dict(max_env_step=16000))
    model = dict(hidden_dim_list=[32], lstm_type=memory)
    assert train(name, AimEnv, {**ON_POLICY, **ends, 'policy': {**ON_POLICY['policy'], 'model': model}}).solved


@pytest.mark.parametrize('alive', [False, True], ids=['all alive', 'some leave'])
@pytest.mark.parametrize('name', ['mappo', 'ippo'])
def test_the_loss_of_continuous_actions_equals_a_reference_in_loops(name, alive):
    torch.manual_seed(2)
    algo = dict(adv_norm=False, entropy_weight=0.03, value_weight=0.7)
    sizes = {**SIZES, 'action_dim': 2, 'continuous': True, 'value_scale': False}
    policy = create_policy(dict(policy_type=name, model=sizes, learn=dict(algo=algo)), enable_field=['learn'])
    policy._model.actor.log_sigma.data.uniform_(-1, 0)
    data, rng = on_policy(batch(alive=alive)), np.random.default_rng(4)
    del data['obs']['action_mask']
    data['action'], mu = (rng.normal(size=(B, T, A, 2)).astype(np.float32) for _ in range(2))
    data['logit'] = {'mu': mu, 'sigma': 0.5 + rng.random((B, T, A, 2), np.float32)}
    loss, _ = policy._loss(policy._data_preprocess_learn(data))

    model, parts = policy._model, []
    real = np.repeat(data['mask'][..., None], A, -1) & (data['obs']['agent_alive'] > 0 if alive else True)
    for row, t, agent in np.argwhere(real):
        obs = {key: torch.as_tensor(part[row, t])[None] for key, part in data['obs'].items()}
        answer = model({'obs': obs})
        mu, sigma = (part[0, agent] for part in answer['logit'])
        old = [torch.as_tensor(data['logit'][key][row, t, agent]) for key in ('mu', 'sigma')]
        action = torch.as_tensor(data['action'][row, t, agent])
        new_p, old_p = (torch.distributions.Normal(*pair).log_prob(action).sum() for pair in ((mu, sigma), old))
        ratio, adv = (new_p - old_p).exp(), float(data['adv'][row, t, agent])
        gain = min(ratio * adv, ratio.clamp(0.8, 1.2) * adv)
        value, before, wanted = answer['value'][0, agent], *(data[key][row, t, agent] for key in ('value', 'return_'))
        clipped = before + (value - before).clamp(-0.2, 0.2)
        miss = max((wanted - value) ** 2, (wanted - clipped) ** 2) / 2
        parts.append(-gain + 0.7 * miss - 0.03 * torch.distributions.Normal(mu, sigma).entropy().sum())
    assert loss.item() == pytest.approx(torch.stack(parts).mean().item(), rel=1e-4)


class OneRowEnv(AimEnv):
    act_space = box((4,), -1.0, 1.0)


class NarrowEnv(AimEnv):
    act_space = box((2, 2), 0.0, 1.0)


def test_continuous_actions_of_a_team_have_a_row_an_agent_and_the_bounds_of_the_policy():
    with pytest.raises(ConfigError, match=r'continuous of shape \(4,\), must be .* continuous of shape \(2, k\)'):
        train('mappo', OneRowEnv, {})
    with pytest.raises(ConfigError, match=r'env.use_act_scale: actions of the env lie in \[0, 1\]'):
        train('mappo', NarrowEnv, {})
    with pytest.raises(ConfigError, match=r'continuous actions of each agent of a team; take one of .*mappo'):
        train('ppo', AimEnv, {})


class WithoutStateEnv(PairEnv):
    obs_space = EnvElementInfo({'agent_state': (2, 3), 'action_mask': (2, 3)}, PairEnv.obs_space.value)

    def _next(self):
        seen = super()._next()
        return {name: seen[name] for name in self.obs_space.shape}


def test_without_a_global_state_a_mixer_is_refused_and_central_critics_see_what_all_see():
    with pytest.raises(ConfigError, match=r'global_obs_dim: observations have no part global_state'):
        train('qmix', WithoutStateEnv, {})
    cfg = {**ON_POLICY, 'commander': dict(max_train_iter=4), 'policy': {**ON_POLICY['policy'], 'model': {}}}
    assert train('mappo', WithoutStateEnv, cfg).train_iters >= 4


def test_a_team_and_a_single_agent_are_not_taken_for_each_other():
    with pytest.raises(ConfigError, match=r'one discrete action an agent of a team; take one of .*mappo'):
        train('dqn', PairEnv, {})
    with pytest.raises(ConfigError, match=r'which gives one discrete action an agent of a team, but the env takes'):
        train('qmix', TemptationEnv, {})


@pytest.mark.parametrize('more', [dict(agent_ids=True), dict(share=False)], ids=['ids', 'own weights'])
@pytest.mark.parametrize('name', ['qmix', 'collaq', 'coma', 'team_ac', 'team_qac'])
def test_agents_that_see_who_they_are_act_differently_on_the_same_observation(name, more):
    torch.manual_seed(0)
    parts = ('agent_state', 'agent_alone_state', 'agent_alone_padding_state')
    obs = {part: torch.ones(1, A, 3) for part in parts} | {'global_state': torch.ones(1, 6)}
    settings = {'model_type': name, **SIZES, **({'alone_obs_dim': 3} if name == 'collaq' else {})}
    blind, seeing = (create_model({**settings, **given}) for given in (dict(agent_ids=False), more))
    blind, seeing = (model.compute_action({'obs': obs})['logit'][0] for model in (blind, seeing))
    assert torch.equal(*blind) and not torch.equal(*seeing)
