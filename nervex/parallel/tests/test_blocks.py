"""Blocks and weights travel whole, and every block is counted once."""

import pickle

import numpy as np
import pytest
import torch
from easydict import EasyDict

from nervex.config import compile_config
from nervex.data import Batch
from nervex.envs import BaseEnv, BaseEnvInfo, BaseEnvTimestep, EnvElementInfo
from nervex.parallel import role as roles
from nervex.parallel.blocks import (
    Following,
    Ledger,
    fold,
    load_weights,
    pack_block,
    pack_weights,
    unfold,
    unpack_block,
)
from nervex.parallel.role import RoleSpec
from nervex.utils import ENV_REGISTRY, tree


def test_a_block_is_taken_once():
    ledger = Ledger()
    assert ledger.take(0, 0, 0) and not ledger.take(0, 0, 0)


def test_the_same_number_of_another_incarnation_is_another_block():
    ledger = Ledger()
    assert ledger.take(0, 0, 0) and ledger.take(0, 1, 0) and ledger.take(1, 0, 0)


def test_late_and_double_blocks_out_of_order():
    ledger = Ledger()
    taken = [ledger.take(2, 0, seq) for seq in (1, 3, 0, 1, 2, 3, 4)]
    assert taken == [True, True, True, False, True, False, True]


def test_a_ledger_stays_small_and_survives_saving():
    ledger = Ledger()
    for seq in range(1000):
        ledger.take(0, 0, seq)
    ledger.take(0, 0, 1005)
    state = ledger.state_dict()
    assert state == {'taken': [[0, 0, 1000, [1005]]]}
    again = Ledger()
    again.load_state_dict(state)
    assert not again.take(0, 0, 999) and not again.take(0, 0, 1005) and again.take(0, 0, 1000)


def test_a_block_travels_as_arrays_and_comes_back_as_batch():
    batch = Batch(obs=np.arange(6, dtype=np.uint8).reshape(3, 2), said={'logit': np.ones((3, 4), np.float32)})
    columns, rows, nbytes = pack_block(batch)
    assert rows == 3 and nbytes == 6 + 48 and type(columns['said']) is dict
    assert unpack_block(columns) == batch


@ENV_REGISTRY.register('frames_of_a_test')
class EnvOfFrames(BaseEnv):
    """Random observations, episodes of different lengths."""

    def __init__(self, cfg=None):
        self._rng = np.random.default_rng(0)

    def _frame(self):
        return self._rng.random(300, dtype=np.float32)

    def reset(self):
        self._left = int(self._rng.integers(5, 25))
        return self._frame()

    def step(self, action):
        self._left -= 1
        info = {'final_eval_reward': 1.0} if self._left == 0 else {}
        return BaseEnvTimestep(self._frame(), np.ones(1, np.float32), self._left == 0, info)

    def seed(self, seed, dynamic_seed=True):
        self._rng = np.random.default_rng(seed)

    def close(self):
        pass

    def __repr__(self):
        return 'EnvOfFrames'

    def info(self):
        number = {'min': 0.0, 'max': 1.0, 'dtype': np.float32}
        return BaseEnvInfo(
            agent_num=1,
            obs_space=EnvElementInfo((300,), number),
            act_space=EnvElementInfo((2,), {'min': 0, 'max': 2, 'dtype': np.int64}),
            rew_space=EnvElementInfo((1,), number),
        )


def steps(rows, envs, ahead=1, ends=(), shape=(16, 16), dtype=np.uint8, seed=0):
    """Rows of envs in step, as an actor sends them: ``next_obs`` is ``ahead`` steps on, something else at ends."""
    rng = np.random.default_rng(seed)
    frames = (255 * rng.random((rows + ahead * envs, *shape))).astype(dtype)
    obs, next_obs = frames[:rows], frames[ahead * envs :].copy()
    for row in ends:
        next_obs[row] = (255 * rng.random(shape)).astype(dtype)
    return Batch(obs=obs, next_obs=next_obs, done=np.isin(np.arange(rows), ends))


@pytest.mark.parametrize('ahead', [1, 3])
@pytest.mark.parametrize('dtype', [np.uint8, np.float32, np.float64])
def test_only_what_is_no_observation_of_the_block_travels(ahead, dtype):
    block = steps(40, 4, ahead, ends=(5, 20, 21), dtype=dtype)
    columns, rows, nbytes = pack_block(block, (ahead * 4, ahead))
    sent, row = columns['next_obs'], 256 * np.dtype(dtype).itemsize
    assert isinstance(sent, Following) and sent.apart.tolist() == [5, 20, 21, *range(40 - 4 * ahead, 40)]
    assert rows == 40 and nbytes == (40 + len(sent.apart)) * row + 40 + 8 * len(sent.apart)
    again = unpack_block(columns)
    assert again == block and list(again.keys()) == list(block.keys())
    assert again['next_obs'].dtype == dtype and again['next_obs'].flags.writeable


def test_envs_one_after_the_other_are_found_by_the_second_guess():
    block = steps(30, 1, ends=(9, 19))
    assert pack_block(block, (4, 1))[0]['next_obs'].lag == 1
    assert unpack_block(pack_block(block, (4, 1))[0]) == block


def test_what_has_no_order_travels_as_it_is():
    rng = np.random.default_rng(0)
    obs, next_obs = rng.random((2, 20, 8, 8))
    assert fold(obs, next_obs, (4, 1)) is next_obs and unfold(obs, next_obs) is next_obs
    assert fold(obs[:1], next_obs[:1], (4, 1)) is not None and not isinstance(fold(obs, obs[::2], (1,)), Following)


def test_small_observations_are_not_looked_at():
    block = steps(20, 4, shape=(4,))
    assert type(pack_block(block, (4, 1))[0]['next_obs']) is np.ndarray


def test_rows_are_equal_only_if_all_bytes_are():
    obs = np.zeros((10, 64))
    next_obs = np.zeros((10, 64))
    next_obs[3, 7], next_obs[4, 0] = -0.0, np.nan
    obs[5, 0] = np.nan
    sent = fold(obs, next_obs, (1,))
    assert sent.apart.tolist() == [3, 9]  # -0.0 is not 0.0; a NaN is itself
    assert unfold(obs, sent).tobytes() == next_obs.tobytes()


def test_each_of_several_observations_is_looked_at_by_itself():
    rng = np.random.default_rng(1)
    frames = rng.integers(0, 255, (24, 16, 16), dtype=np.uint8)
    obs = {'image': frames[:20], 'state': rng.random((20, 3)), 'own': rng.random((20, 64))}
    next_obs = {'image': frames[4:], 'state': rng.random((20, 3)), 'own': rng.random((20, 64))}
    block = Batch(obs=Batch(obs), next_obs=Batch(next_obs))
    columns, _, _ = pack_block(block, (4, 1))
    kinds = {key: type(value) for key, value in columns['next_obs'].items()}
    assert kinds == {'image': Following, 'state': np.ndarray, 'own': np.ndarray} and unpack_block(columns) == block


def test_an_actor_leaves_them_out_whatever_its_episodes_do(tmp_path, monkeypatch):
    cfg = compile_config(
        dict(
            env=dict(env_type='frames_of_a_test', actor_env_num=3, evaluator_env_num=1),
            policy=dict(
                policy_type='dqn', model=dict(obs_dim=300, action_dim=2), learn=dict(algo=dict(nstep=2), batch_size=4)
            ),
            actor=dict(n_sample=12),
        )
    )
    role = roles.ActorRole(RoleSpec('actor', 0, 0, 1, EasyDict(cfg), 0, str(tmp_path), 3))
    seen = []
    monkeypatch.setattr(roles, 'pack_block', lambda data, lags: seen.append((data, lags)) or pack_block(data, lags))
    try:
        request = dict(version=0, train_iter=0, setting={'eps': 0.5}, rows=90)
        header, columns = role.collect({'task_id': 'a'}, request, None)
    finally:
        role.close()
    (data, lags), sent = seen[0], columns['next_obs']
    assert lags == (6, 2) and isinstance(sent, Following) and len(sent.apart) < 45
    assert header.nbytes < 0.8 * sum(column.nbytes for _, column in data.items())
    assert unpack_block(columns) == data and data['done'].sum() > 3


class Mode:
    """A mode that keeps what it is given."""

    def load_state_dict(self, state):
        self.state = state


def test_weights_travel_as_arrays_and_come_back_as_they_were():
    model = torch.nn.Linear(3, 2)
    state = {'model': model.state_dict(), 'half': torch.ones(2, dtype=torch.bfloat16), 'count': 3}
    packed, mode = pack_weights(state), Mode()
    assert isinstance(packed['model']['weight'], np.ndarray) and tree.nbytes(packed) == 8 * 4 + 2 * 2
    load_weights(mode, pickle.loads(pickle.dumps(packed)))
    assert torch.equal(mode.state['model']['weight'], model.weight) and mode.state['count'] == 3
    assert mode.state['half'].dtype is torch.bfloat16
