"""The policy learns the drill, is taught, is played against, and goes on from a saved state."""

import copy

import numpy as np
import pytest
import torch

from app_zoo.alphastar.envs import Drill
from app_zoo.alphastar.envs.orders import PLACES
from app_zoo.alphastar.policy import AlphaStarPolicy
from nervex.data import Batch
from nervex.entry import serial_pipeline
from nervex.envs import Duels
from nervex.policy import check_batched
from nervex.policy.tests.learning import wrong_sign
from nervex.policy.traj_block import TrajBlock
from nervex.run.build import load_policy
from nervex.run.opponents import Opponents
from nervex.torch_utils.crossing import to_arrays
from nervex.utils import ConfigError, tree
from nervex.utils.class_config import merge_config
from nervex.utils.file_helper import read_file
from nervex.worker.actor.env_manager import create_env_manager
from nervex.worker.actor.rows import ObsBlock, in_columns

SIZES = dict(map_size=8, max_units=6, max_selected=3, rounds=4)
MODEL = dict(width=16, core_dim=32, lstm_layers=0, map_blocks=0, entity_layers=1, map_channels=8, key_dim=16)
CONFIG = dict(
    exp_name='run',
    env=dict(
        env_type='alphastar_drill',
        import_names=['app_zoo.alphastar.envs'],
        env_manager_type='vector',
        actor_env_num=64,
        evaluator_env_num=32,
        **SIZES,
    ),
    policy=dict(
        policy_type='alphastar',
        import_names=['app_zoo.alphastar.policy'],
        model=MODEL,
        collect=dict(unroll_len=4, traj_len=4),
        learn=dict(
            batch_size=64, train_step=2, learning_rate=5e-3, algo=dict(discount_factor=0.9, entropy_weight=0.003)
        ),
    ),
    replay_buffer=dict(agent=dict(meta_maxlen=128)),
    actor=dict(n_sample=64),
    evaluator=dict(n_episode=32, eval_freq=50),
    commander=dict(max_env_step=6400),
)
#: few and short steps, for what need not be learned
FEW = dict(
    env=dict(actor_env_num=4, evaluator_env_num=2),
    policy=dict(learn=dict(batch_size=8)),
    replay_buffer=dict(agent=dict(meta_maxlen=16)),
    actor=dict(n_sample=8),
    evaluator=dict(n_episode=2),
    commander=dict(max_env_step=None, max_train_iter=8),
)
MEMORY = dict(policy=dict(model=dict(lstm_layers=1)))


def config(*more):
    cfg = copy.deepcopy(CONFIG)
    for part in more:
        cfg = merge_config(cfg, part)
    return cfg


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def policy(*more, **settings):
    """A policy by itself, and a batch of what it has collected."""
    torch.manual_seed(0)
    cfg = merge_config(config(*more)['policy'], settings)
    cfg['collect']['env_num'] = 8
    cfg['model']['action_dim'] = list(Drill(SIZES).action_num)
    return AlphaStarPolicy(cfg)


def managed(num=8):
    """Launched games."""
    manager = create_env_manager('vector', Duels(Drill), [SIZES] * num, {})
    manager.seed(0)
    manager.launch()
    return manager


def collected(one, steps=4):
    """Samples of one window of steps."""
    mode, rows = in_columns(one.collect_mode), []
    with managed() as manager:
        for _ in range(steps):
            ids, obs = manager.observe()
            obs = tree.map(np.copy, obs)
            data_id, data = mode.data_preprocess(ObsBlock(ids, obs))
            output = mode.forward(data_id, data)
            step = manager.advance(ids, np.asarray(output['action']))
            transition = to_arrays(mode.process_transition(obs, output, step))
            rows.append(tree.map(np.copy, {'truncated': step.truncated, **transition}))
    columns = {k: Batch(v) if isinstance(v, dict) else v for k, v in tree.stack(rows).items()}
    return mode.get_train_sample(TrajBlock.cut(columns, 0))


def learn(one, samples):
    return one.learn_mode.forward(one.learn_mode.data_preprocess(samples))


# ---- learning
def test_learns_the_drill():
    result = serial_pipeline(config(), 0)
    assert result.best_return > 1.0  # of 4; random orders: 0.16
    assert result.win_rate > 0.8


@pytest.mark.slow
@pytest.mark.parametrize('memory', [{}, MEMORY], ids=['without', 'with a memory'])
@pytest.mark.parametrize('seed', range(3))
def test_learns_all_parts(seed, memory):
    result = serial_pipeline(config(memory, dict(commander=dict(max_env_step=30_000))), seed)
    assert result.best_return > 2.6  # types and one of units and targets right: 0.6 a step


@pytest.mark.slow
def test_uphill_it_learns_nothing():
    result = serial_pipeline(
        config(dict(commander=dict(max_env_step=15_000))), 0, policy_fn=wrong_sign(AlphaStarPolicy)
    )
    assert result.final_return < 0.5


@pytest.mark.parametrize('memory', [{}, MEMORY], ids=['without', 'with a memory'])
def test_the_first_update_knows_its_own_orders(memory):
    one = policy(memory)
    logged = learn(one, collected(one))
    assert logged['mean_rho'].item() == pytest.approx(1.0, abs=1e-3)
    assert logged['total_loss'].isfinite()


def test_rows_and_columns_agree():
    with managed(3) as manager:
        assert check_batched(policy(), manager, steps=8) == 24


# ---- the teacher
def test_the_teacher_is_the_first_policy_and_stays():
    one = policy()
    samples, first = collected(one), copy.deepcopy(one._teacher_model.state_dict())
    apart = [learn(one, samples)['teacher_loss'].item() for _ in range(4)]
    assert apart[0] == pytest.approx(0.0, abs=1e-6) and apart[-1] > 1e-3
    assert all((first[key] == value).all() for key, value in one._teacher_model.state_dict().items())
    assert any((first[key] != value).any() for key, value in one._model.state_dict().items())


def test_a_heavy_teacher_holds_the_policy():
    apart = []
    for weight in (0.01, 100.0):
        one = policy(learn=dict(algo=dict(teacher_weight=weight)))
        samples = collected(one)
        apart.append([learn(one, samples)['teacher_loss'].item() for _ in range(12)][-1])
    assert apart[1] < apart[0] / 2


def test_without_a_teacher_there_is_none():
    one = policy(learn=dict(algo=dict(teacher_weight=0.0)))
    assert learn(one, collected(one))['teacher_loss'].item() == 0 and 'teacher_model' not in one._state_dict_learn()


def test_the_teacher_may_be_a_checkpoint():
    result = serial_pipeline(config(FEW, dict(exp_name='teacher')), 0)
    one = policy(learn=dict(teacher='teacher'))
    saved = read_file(result.best_checkpoint)['model']
    assert all((saved[key] == value).all() for key, value in one._teacher_model.state_dict().items())
    with pytest.raises(ConfigError, match=r'policy\.learn\.teacher: teacher is of another network'):
        policy(model=dict(core_dim=16), learn=dict(teacher='teacher'))


# ---- playing and going on
@pytest.mark.parametrize('memory', [{}, MEMORY], ids=['without', 'with a memory'])
def test_a_checkpoint_is_an_opponent_greedy_or_sampled(memory):
    result = serial_pipeline(config(FEW, memory), 0)
    orders = {}
    for acts in ('greedy', 'sampled'):
        rivals = Opponents(Drill, result.best_checkpoint, acts)
        game = Drill(SIZES, 16)
        game.begin(np.arange(16), [np.random.default_rng(k) for k in range(16)])
        game.fresh[:] = True
        rows, sides = np.arange(16), np.zeros(16, int)
        orders[acts] = [rivals.act(rivals.name, game, rows, sides, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    (one, two, three), (a, b, c) = orders.values()
    if not memory:
        assert (one == two).all() and (one == three).all()  # greedy: no chance
        assert (a == b).all()
    assert one.shape == (16, Drill(SIZES).sizes.selected + 5) and (a != c).any()


def test_an_opponent_that_draws_nothing_is_told(monkeypatch):
    result = serial_pipeline(config(FEW), 0)
    greedy = AlphaStarPolicy._forward_eval

    def without_seed(self, data_id, data):
        return greedy(self, data_id, {'obs': data['obs']})

    without_seed.__nervex_batched__ = True
    monkeypatch.setattr(AlphaStarPolicy, '_forward_eval', without_seed)
    with pytest.raises(ConfigError, match=r"env\.opponent_acts: got 'sampled', but .* take 'greedy'"):
        Opponents(Drill, result.best_checkpoint, 'sampled').check(SIZES)


def test_selfplay_with_a_memory_resumes_exactly():
    def run(name, updates):
        more = dict(
            exp_name=name,
            env=dict(opponent_acts='sampled', opponent_eps=0.1),
            commander=dict(selfplay='pfsp', snapshot_freq=2, max_train_iter=updates),
        )
        return serial_pipeline(config(FEW, MEMORY, more), 3)

    whole = run('whole', 12)
    run('parts', 6)
    parts = serial_pipeline(None, resume='parts', overrides=('commander.max_train_iter=12',))
    one, two = (read_file(result.checkpoint) for result in (whole, parts))
    assert one['last_iter'] == two['last_iter'] == 12
    for key in ('model', 'teacher_model'):
        assert all(torch.equal(value, two[key][name]) for name, value in one[key].items())


def test_a_loaded_policy_gives_legal_orders():
    result = serial_pipeline(config(FEW), 0)
    mode = load_policy(result.best_checkpoint).eval_mode
    engine = Duels(Drill).create_vector_env([SIZES] * 4)
    seen = engine.start([0, 1, 2, 3])
    found = mode.forward(*mode.data_preprocess(dict(enumerate({k: v[i] for k, v in seen.items()} for i in range(4)))))
    kind = np.asarray(found['action'])[:, PLACES['action_type']]
    assert (seen['type_mask'][np.arange(4), kind] == 1).all()
