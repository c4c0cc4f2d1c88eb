"""Nobody's memory is somebody else's: the envs', the managers', the callers' and the samples' change by themselves."""

import numpy as np
import pytest

from nervex.envs import BaseEnvTimestep, GymEnv
from nervex.envs.tests.fakes import CounterEnv
from nervex.worker.actor import BaseSerialActor
from nervex.worker.actor.env_manager import create_env_manager
from nervex.worker.actor.env_manager.tests.managers import build, check_counter_rows, drive, first, whole_episodes
from nervex.worker.actor.tests.counting import Hooks, check_rows


class InPlaceEnv(CounterEnv):
    """Has one observation and one info, which it scribbles over and answers again."""

    def __init__(self, cfg=None):
        super().__init__(cfg)
        self._mine = None
        self._info = {}

    def reset(self, **kwargs):
        return self._again(super().reset(**kwargs))

    def step(self, action):
        self._scribble(self._mine)
        self._info.clear()
        obs, reward, done, info = super().step(action)
        self._info.update(info)
        return BaseEnvTimestep(self._again(obs), reward, done, self._info)

    def _again(self, obs):
        if self._mine is None:
            self._mine = obs
        for key in obs if isinstance(obs, dict) else ():
            self._mine[key][...] = obs[key]
        if not isinstance(obs, dict):
            self._mine[...] = obs
        return self._mine

    def _scribble(self, obs):
        for leaf in obs.values() if isinstance(obs, dict) else (obs,):
            leaf[...] = 77


class KeepsActions(CounterEnv):
    """Rewards the distance between its last two actions, which it keeps as they are given."""

    def reset(self, **kwargs):
        self._last = None
        return super().reset(**kwargs)

    def step(self, action):
        obs, _, done, info = super().step(action)
        last, self._last = self._last, action
        return BaseEnvTimestep(obs, np.zeros(1, np.float32) if last is None else action[:1] - last[:1], done, info)


def test_action_that_an_env_keeps(single_kind):
    with build(
        single_kind,
        [dict(tag=i, act_dim=2, length=99) for i in range(4)],
        env=KeepsActions,
        wait_num=4,
        step_wait_timeout=10,
    ) as manager:
        actions = np.zeros((4, 2), np.float32)
        for k in range(4):
            actions[:] = 2**k  # the caller's memory is used again, too
            block = manager.advance(manager.observe()[0], actions)
            assert block.reward.tolist() == [0.0 if k == 0 else 2.0 ** (k - 1)] * 4


@pytest.mark.parametrize('obs', ['vector', 'dict'])
def test_env_that_uses_its_memory_again(single_kind, obs):
    cfgs = [dict(tag=i, length=3 + i, obs=obs) for i in range(4)]
    with build(single_kind, cfgs, env=InPlaceEnv) as manager:
        rows, _ = drive(manager, 100_000, until=whole_episodes(3))
        assert all(check_counter_rows(rows[i], i, 3 + i) >= 3 for i in range(4))


def test_infos_that_an_env_uses_again(single_kind):
    with build(
        single_kind,
        [dict(tag=i, step_info=True, length=9) for i in range(2)],
        env=InPlaceEnv,
        wait_num=2,
        step_wait_timeout=10,
    ) as manager:
        kept = [manager.step({0: 1, 1: 1}) for _ in range(4)]
        assert [[t[i].info['step'] for t in kept] for i in (0, 1)] == [[1, 2, 3, 4]] * 2


@pytest.mark.parametrize('obs', ['vector', 'dict'])
def test_caller_that_scribbles_over_its_answers(kind, obs):
    """The documented form answers copies: whatever is done to them, the envs go on as before."""
    cfgs = [dict(tag=7, length=9, obs=obs, step_info=True)] * 4
    with build(kind, cfgs, wait_num=4, step_wait_timeout=10) as manager:
        for step in range(1, 7):
            ready = manager.ready_obs
            timesteps = manager.step(dict.fromkeys(ready, 1))
            seen = first(timesteps.obs)
            assert len(ready) == 4 and (seen[:, 2] == step).all() and (timesteps.reward == step).all()
            for tensor in (first(ready.obs), seen, timesteps.reward):
                tensor.fill_(99)
            timesteps.done.fill_(True)
            timesteps.info[0]['scribble'] = True


@pytest.mark.parametrize('kind', ['base', 'sync_subprocess', 'async_subprocess', 'thread'])
@pytest.mark.parametrize('window', [1, 4, 'inf'])
def test_samples_stay_as_they_were(kind, window, tmp_path):
    """While the actor goes on, and while the envs' memory is scribbled over."""
    cfgs = [dict(tag=i, length=5) for i in range(3)]
    size = dict(n_episode=6) if window == 'inf' else dict(n_sample=24)
    actor = BaseSerialActor(dict(traj_len=window, **size), str(tmp_path))
    actor.env = create_env_manager(kind, InPlaceEnv, cfgs)
    actor.env.launch()
    actor.policy = Hooks().collect_mode()
    batches = [actor.generate_data(0)[0] for _ in range(4)]
    copies = [{key: np.array(batch[key]) for key in batch.keys()} for batch in batches]
    for block in actor.env._live.store.obs:
        block[...] = 55
    actor.close()
    rows = []
    for batch, copy in zip(batches, copies):
        assert all(np.array_equal(batch[key], copy[key]) for key in copy)
        rows += check_rows(batch)[0]
    assert len(set(rows)) == len(rows)


@pytest.mark.parametrize(
    'package,cfg',
    [
        ('gymnasium', dict(env_id='CartPole-v1')),
        ('gymnasium', dict(env_id='Acrobot-v1')),
        ('envpool', dict(env_id='CartPole-v1', vector_backend='envpool')),
        ('envpool', dict(env_id='CartPole-v1', vector_backend='envpool', vector_kwargs={'batch_size': 3})),
        ('ale_py', dict(env_id='ALE/Pong-v5')),
    ],
)
def test_blocks_of_real_vectorised_envs_stay_valid(package, cfg):
    pytest.importorskip(package)
    kind, n = ('async_vector', 6) if 'vector_kwargs' in cfg else ('vector', 3)
    with create_env_manager(kind, GymEnv, [cfg] * n) as manager:
        manager.seed(0)
        manager.launch()
        rng, kept = np.random.default_rng(0), []
        for _ in range(30):
            ids, obs = manager.observe()
            kept.append((obs, obs.copy()))
            block = manager.advance(ids, rng.integers(0, 2, len(ids)))
            kept.append((block.obs, block.obs.copy()))
            kept.append((block.reward, block.reward.copy()))
            assert all((held == copy).all() for held, copy in kept[-6:])  # this step's and the one before
