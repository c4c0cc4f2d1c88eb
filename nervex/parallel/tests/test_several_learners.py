"""Two learners on gloo are one learner on the joined batch."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import nervex

WORKER = """
import contextlib, json, sys
import torch
from nervex.config import compile_config
from nervex.data import Batch
from nervex.run.build import build_policy, env_info, policy_class
from nervex.parallel.learner_role import LearnerGroup
from nervex.parallel.role import RoleSpec

rank, count, folder, policy_type = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
torch.set_num_threads(1)
names = ['app_zoo.classic_control.cartpole.envs.cartpole_env']
model = dict(hidden_dim_list=[16, 16])
cfg = compile_config(dict(
    env=dict(env_type='cartpole', import_names=names), actor=dict(n_sample=8),
    policy=dict(policy_type=policy_type, model=model, learn=dict(batch_size=32, graph='off')),
))
if policy_type == 'ppo':
    cfg.policy.learn.algo.adv_norm = False  # a mean over the batch would be one over the shard
spec = RoleSpec('learner', rank, 0, count, cfg, 0, folder, 1, ckpt_path=folder)
with contextlib.ExitStack() as stack:
    group = LearnerGroup(spec, stack)
    torch.manual_seed(0)
    policy = build_policy(spec.own_config(), policy_class(cfg, None), None, env_info(cfg, None), ('learn', ))
    rows = 32 // count
    assert policy._get_batch_size() == rows
    draw = torch.Generator().manual_seed(1)
    for k in range(100):
        n = 32
        data = dict(obs=torch.randn(n, 4, generator=draw), next_obs=torch.randn(n, 4, generator=draw),
                    action=torch.randint(2, (n, ), generator=draw), reward=torch.randn(n, generator=draw),
                    done=torch.rand(n, generator=draw) < 0.1, logit=torch.randn(n, 2, generator=draw),
                    value=torch.randn(n, generator=draw), adv=torch.randn(n, generator=draw),
                    return_=torch.randn(n, generator=draw), truncated=torch.zeros(n, dtype=torch.bool))
        mine = Batch(data)[rank * rows:(rank + 1) * rows]
        policy._forward_learn(policy._data_preprocess_learn(mine))
    assert group.agree(5 - rank) == 5 - (count - 1)
    weights = torch.cat([p.detach().reshape(-1) for p in policy._model.parameters()])
    json.dump(weights.tolist(), open(f'{folder}/weights_{count}_{rank}.json', 'w'))
"""


@pytest.mark.slow
@pytest.mark.parametrize('policy_type', ['dqn', 'ppo'])
def test_two_learners_end_with_the_weights_of_one_on_the_joined_batch(tmp_path, policy_type):
    root = str(pathlib.Path(nervex.__file__).parents[1])
    jobs = [
        subprocess.Popen([sys.executable, '-c', WORKER, str(rank), str(count), str(tmp_path), policy_type], cwd=root)
        for rank, count in ((0, 1), (0, 2), (1, 2))
    ]
    assert [job.wait(120) for job in jobs] == [0, 0, 0]
    one, first, second = (json.loads((tmp_path / f'weights_{name}.json').read_text()) for name in ('1_0', '2_0', '2_1'))
    assert first == second
    assert max(abs(a - b) for a, b in zip(one, first)) < 1e-6


THREADS = """
import threading, time
import torch
from nervex.config import compile_config
from nervex.parallel.role import Role, RoleSpec

cfg = compile_config('cartpole_dqn', overrides=['policy.torch_threads=2'])
role = Role(RoleSpec('learner', 0, 0, 1, cfg, 0, '.', 1))

def work():  # as Ray has it: not in the thread that built the role
    role.begin()
    a = torch.randn(1200, 1200)
    mine, everybodys = time.thread_time(), time.process_time()
    for _ in range(8):
        a @ a
    print((time.process_time() - everybodys) / (time.thread_time() - mine))

thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def test_a_role_computes_with_as_many_threads_as_the_config_says_whichever_thread_works():
    env = {**os.environ, 'OMP_NUM_THREADS': '1', 'MKL_NUM_THREADS': ''}
    done = subprocess.run([sys.executable, '-c', THREADS], capture_output=True, text=True, env=env, check=True)
    assert float(done.stdout) > 1.5, 'processor time of all threads over that of one'
