import numpy as np
import pytest
import torch

from nervex.envs.tests.fakes import CounterEnv
from nervex.worker.actor.env_manager import BaseEnvManager, EnvStateError


def make(n=3, episode_num=None, **cfg):
    manager = BaseEnvManager(CounterEnv, [{'tag': i, 'length': 3 + i, **cfg} for i in range(n)], n, episode_num)
    manager.launch()
    return manager


def test_block_form_gives_final_and_first_observations():
    with make(2) as manager:                                         # lengths 3 and 4
        for step in (1, 2):
            ids, _ = manager.observe()
            assert ids is manager.all_ids
            block = manager.advance(ids, np.array([0, 1]))
            assert block.reward.tolist() == [step, step] and not block.done.any()
        block = manager.advance(manager.all_ids, np.array([1, 0]))
        assert block.done.tolist() == [True, False]
        assert block.obs[0].tolist() == [0, 1, 3, 1]                 # the final observation: episode 1, step 3
        assert manager.observe()[1][0].tolist() == [0, 2, 0, -1]     # the next episode's first
        assert block.episode_return[0] == 1 + 2 + 3 and block.episode_length[0] == 3
        assert block.info[0]['final_eval_reward'] == 6 and block.info[1] == {}


def test_mapping_form_answers_rows_of_tensors():
    with make(3) as manager:
        assert torch.equal(manager.ready_obs[2], torch.tensor([2., 1., 0., -1.]))
        timesteps = manager.step({0: 1, 2: torch.tensor(0)})
        assert list(timesteps) == [0, 2]
        assert timesteps[2].reward.shape == (1, ) and timesteps[2].done is False
        assert timesteps.obs.shape == (2, 4) and timesteps.reward.shape == (2, 1)
        assert manager.ready_obs[1].tolist() == [1, 1, 0, -1]        # untouched by the partial step
        assert manager.ready_obs[0].tolist() == [0, 1, 1, 1]


def test_env_is_done_after_its_episodes():
    with make(2, episode_num=1) as manager:
        while not manager.done:
            manager.step({i: 0 for i in manager.ready_env})
        with pytest.raises(EnvStateError, match='not ready'):
            manager.step({0: 1})
