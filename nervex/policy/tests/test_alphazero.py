"""AlphaZero: its loss and samples by hand, what it needs of a game, and that it learns one."""

import math

import numpy as np
import pytest
import torch

from app_zoo.board.envs.search import TIC_TAC_TOE_RULES
from nervex.entry import arena, serial_pipeline
from nervex.policy import create_policy
from nervex.policy.suits import check_env
from nervex.policy.traj_block import TrajBlock
from nervex.rl_utils import alphazero_data, alphazero_error
from nervex.run.build import build_serial, load_policy
from nervex.run.state import save_state
from nervex.utils import POLICY_REGISTRY, ConfigError
from nervex.utils.class_config import merge_config

RULES = 'app_zoo.board.envs.search:TIC_TAC_TOE_RULES'


def make(fields=('learn', 'collect', 'eval'), **cfg):
    torch.manual_seed(0)
    model = dict(obs_dim=18, action_dim=9, hidden_dim_list=[16])
    return create_policy(dict(policy_type='alphazero', model=model, game=RULES, **cfg), enable_field=fields)


def config(**sections):
    """Some games of tic-tac-toe."""
    cfg = dict(
        exp_name='run',
        env=dict(
            env_type='tic_tac_toe',
            env_manager_type='vector',
            actor_env_num=8,
            evaluator_env_num=4,
            opponent='self',
            evaluator_opponent='perfect',
        ),
        policy=dict(
            policy_type='alphazero',
            model=dict(hidden_dim_list=[32]),
            learn=dict(batch_size=32),
            collect=dict(search=dict(simulations=6)),
            eval=dict(simulations=6),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=1000)),
        actor=dict(n_sample=16),
        evaluator=dict(n_episode=4, eval_freq=20),
        commander=dict(max_env_step=400),
    )
    return merge_config(cfg, sections)


# ---- the loss
def test_the_loss_by_hand():
    logit = torch.tensor([[0.0, 0.0, -math.inf], [math.log(3), 0.0, 0.0]], requires_grad=True)
    policy = torch.tensor([[0.75, 0.25, 0.0], [0.0, 1.0, 0.0]])
    value, return_ = torch.tensor([0.5, -1.0], requires_grad=True), torch.tensor([1.0, 1.0])
    # -log pi: ln 2 for both of the first row, ln 5 for the second action of the other one; errors 0.25 and 4
    loss = alphazero_error(alphazero_data(logit, policy, value, return_, None))
    assert loss.policy_loss.item() == pytest.approx((math.log(2) + math.log(5)) / 2)
    assert loss.value_loss.item() == pytest.approx((0.25 + 4) / 2)
    sum(loss).backward()
    # d policy loss / d logit = (pi - p) / 2
    assert torch.allclose(logit.grad, torch.tensor([[-0.125, 0.125, 0.0], [0.3, -0.4, 0.1]]))
    weighted = alphazero_error(alphazero_data(logit, policy, value, return_, torch.tensor([2.0, 0.0])))
    assert weighted.policy_loss.item() == pytest.approx(math.log(2)) and weighted.value_loss.item() == 0.25


def test_shapes_that_do_not_fit_are_told():
    logit, value = torch.zeros(2, 3), torch.zeros(2)
    with pytest.raises(ValueError, match='policy has shape'):
        alphazero_error(alphazero_data(logit, torch.zeros(2, 4), value, value, None))
    with pytest.raises(ValueError, match='return_ has shape'):
        alphazero_error(alphazero_data(logit, logit, value, torch.zeros(2, 1), None))


def positions(count):
    """Boards after some moves by chance, with their masks."""
    rng, boards = np.random.default_rng(0), np.zeros((count, 2, 9), bool)
    for row, board in enumerate(boards):
        cells = rng.permutation(9)[: row % 4]
        board[0, cells[::2]], board[1, cells[1::2]] = True, True
    obs = TIC_TAC_TOE_RULES.observe(boards, (18,))
    return {'observation': obs, 'action_mask': TIC_TAC_TOE_RULES.legal(boards).astype(np.float32)}


@pytest.mark.parametrize('symmetries', [False, True])
def test_the_loss_of_a_batch_is_that_of_its_turned_boards(symmetries):
    policy = make(('learn',), learn=dict(algo=dict(value_weight=0.5, symmetries=symmetries)))
    obs, rng = positions(20), np.random.default_rng(1)
    target = rng.random((20, 9)).astype(np.float32) * obs['action_mask']
    target /= target.sum(1, keepdims=True)
    return_ = rng.choice([-1.0, 0.0, 1.0], 20).astype(np.float32)
    rows = [{'obs': {k: v[i] for k, v in obs.items()}, 'policy': target[i], 'return_': return_[i]} for i in range(20)]
    found = policy._loss(policy._data_preprocess_learn(rows))[0].item()

    orders = [(np.arange(18), np.arange(9)), *TIC_TAC_TOE_RULES.symmetries((18,))]
    total = 0.0
    for k in range(20):
        p, q = orders[k % 8 if symmetries else 0]
        seen = obs['observation'][k][p]
        with torch.no_grad():
            output = policy._model({'obs': torch.from_numpy(seen)[None]})
        legal = TIC_TAC_TOE_RULES.legal(TIC_TAC_TOE_RULES.positions(seen[None]))[0]
        powers = np.where(legal, np.exp(output['logit'][0].numpy()), 0)
        log_pi = np.log(powers / powers.sum(), where=legal, out=np.zeros(9))
        total += -(target[k][q] * log_pi).sum() + 0.5 * (return_[k] - output['value'].item()) ** 2
    assert found == pytest.approx(total / 20, rel=1e-5)


# ---- samples
def game(values, reward, done=True):
    """The steps of one game, whose last reward is its mover's."""
    steps = len(values)
    obs = {k: v[:steps] for k, v in positions(steps).items()}
    rewards, ends = np.zeros(steps, np.float32), np.zeros(steps, bool)
    rewards[-1], ends[-1] = reward, done
    return TrajBlock.cut(
        dict(
            obs=obs, next_obs=obs, action=np.zeros(steps, int), policy=np.full((steps, 9), 1 / 9, np.float32),
            value=np.array(values, np.float32), reward=rewards, done=ends, truncated=np.zeros(steps, bool),
        ),
        repeats=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    'gae_lambda, expected',
    [
        (1.0, [1.0, -1.0, 1.0]),  # who moved last has won
        (0.0, [-0.4, -0.6, 1.0]),  # minus what the next search expects for the other side
        # 1; -(0.5 * 0.6 + 0.5 * 1) = -0.8; -(0.5 * 0.4 + 0.5 * -0.8) = 0.2
        (0.5, [0.2, -0.8, 1.0]),
    ],
)
def test_returns_of_a_game_by_hand(gae_lambda, expected):
    policy = make(('collect',), learn=dict(algo=dict(gae_lambda=gae_lambda)))
    samples = policy._get_train_sample(game([0.3, 0.4, 0.6], 1.0))
    assert np.allclose(samples['return_'], expected, atol=1e-6)
    assert sorted(samples.keys()) == ['obs', 'policy', 'return_']


def test_a_window_that_ends_within_a_game_is_valued_behind_its_end():
    policy = make(('collect',))
    steps = game([0.3, 0.4], 0.0, done=False)
    behind = policy._model(policy._model_input({k: torch.from_numpy(v[1:]) for k, v in positions(2).items()}))
    samples, value = policy._get_train_sample(steps), behind['value'].item()
    assert np.allclose(samples['return_'], [value, -value], atol=1e-6)


# ---- acting
def test_collecting_draws_and_evaluating_does_not():
    policy, obs = make(), positions(4)
    data = {'obs': obs['observation'], 'action_mask': obs['action_mask']}
    drawn = {tuple(policy._forward_collect(range(4), data)['action']) for _ in range(20)}
    best = {tuple(policy._forward_eval(range(4), data)['action']) for _ in range(5)}
    assert len(drawn) > 5 and len(best) == 1
    found = policy._forward_collect(range(4), data)
    assert np.allclose(found['policy'].sum(1), 1, atol=1e-5) and (found['policy'][obs['action_mask'] == 0] == 0).all()
    assert np.allclose(np.exp(found['logit']), found['policy']) and (np.abs(found['value']) <= 1).all()


def test_moves_are_drawn_as_often_as_the_improved_policy_says():
    policy = make(('collect',), collect=dict(search=dict(simulations=9)))
    obs = {k: np.repeat(v[1:2], 4000, 0) for k, v in positions(2).items()}
    found = policy._forward_collect(range(4000), {'obs': obs['observation']})
    shares, wanted = np.bincount(found['action'], minlength=9) / 4000, found['policy'].mean(0)
    assert np.abs(shares - wanted).max() < 0.05 and shares[obs['action_mask'][0] == 0].sum() == 0


# ---- what it needs
def test_a_game_without_rules_is_refused_with_the_remedy():
    cfg = config(
        env=dict(env_type='rock_paper_scissors', opponent='random', evaluator_opponent=None),
        policy=dict(learn=dict(algo=dict(discount_factor=1.0))),
    )
    with pytest.raises(ConfigError, match=r"policy.policy_type: got alphazero, .*policy.game='module:object'"):
        serial_pipeline(cfg, 0)


@pytest.mark.parametrize(
    'name, words',
    [
        ('app_zoo.board.envs.search:CHESS_RULES', 'cannot be loaded'),
        ('chess', "must be written 'module:name'"),
        ('app_zoo.board.envs:Boards', 'has no positions, observe, play, symmetries'),
    ],
)
def test_rules_that_are_none_are_told(name, words):
    with pytest.raises(ConfigError, match=rf'policy.game: .*{words}'):
        serial_pipeline(config(policy=dict(game=name)), 0)


def test_the_error_for_other_envs_names_policies_that_can():
    from nervex.policy.tests.toy_envs import TemptationEnv

    with pytest.raises(ConfigError) as error:
        check_env(POLICY_REGISTRY.get('alphazero'), TemptationEnv().info())
    assert 'dqn' in str(error.value) and 'alphazero,' not in str(error.value).partition('take one of')[2]


def test_a_positive_discount_with_itself_is_refused():
    with pytest.raises(ConfigError, match='must be negative'):
        serial_pipeline(config(policy=dict(learn=dict(algo=dict(discount_factor=1.0)))), 0)


# ---- runs
def rounds(run, count):
    for _ in range(count):
        run.commander.step()
        run.collect()
        for batch in run.batches():
            run.train(batch)


def test_a_resumed_run_goes_on_exactly():
    with build_serial(config(), 0) as run:
        run.begin()
        rounds(run, 8)
        save_state(run)
        rounds(run, 8)
        straight = {k: v.clone() for k, v in run.policy._model.state_dict().items()}
    with build_serial(config(), 0, resume='run') as run:
        run.begin()
        rounds(run, 8)
        assert all(torch.equal(straight[k], v) for k, v in run.policy._model.state_dict().items())


def test_against_snapshots_of_itself_and_as_an_opponent():
    own = dict(opponent='random', evaluator_opponent=None)
    learn = dict(algo=dict(discount_factor=1.0))
    commander = dict(selfplay='pool', snapshot_freq=10, max_env_step=300)
    serial_pipeline(config(env=own, policy=dict(learn=learn), commander=commander), 0)
    table = arena(['run', 'random', 'perfect'], 20)
    assert table.wins[0, 1] > table.wins[1, 0] and (table.wins + table.wins.T + table.draws)[0].tolist() == [0, 20, 20]
    assert load_policy('run')._cfg.game == RULES  # a checkpoint knows its rules


@pytest.mark.slow
@pytest.mark.parametrize('seed', [0, 1, 2])
def test_it_learns_tic_tac_toe_and_then_never_loses_to_perfect_play(seed):
    result = serial_pipeline('tic_tac_toe_alphazero', seed, overrides=('exp_name=run',))
    assert result.solved
    table = arena(['run', 'perfect', 'random'], 500)
    assert table.wins[1, 0] == 0 and table.wins[2, 0] == 0 and table.wins[0, 2] > 400


@pytest.mark.slow
def test_one_that_learns_uphill_does_not():
    from nervex.policy.tests.learning import wrong_sign

    broken, limit = wrong_sign(POLICY_REGISTRY.get('alphazero')), ('commander.max_env_step=15000',)
    result = serial_pipeline('tic_tac_toe_alphazero', 0, policy_fn=broken, overrides=limit)
    assert not result.solved and result.final_return < -0.1
