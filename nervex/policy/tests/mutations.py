"""
Every policy on its toy problem, as it is and broken on purpose, as a table for docs/en/policies.md:
``python -m nervex.policy.tests.mutations [policy ...]``.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import torch

from nervex.policy.tests import test_impala, test_offline, test_on_policy_ac, test_ppo_recurrent, test_value_policies
from nervex.policy.tests.learning import no_bootstrap, train, wrong_sign
from nervex.policy.tests.test_dqn import LEARNS
from nervex.policy.tests.test_off_policy_ac import DISCRETE, NAMES
from nervex.policy.tests.test_off_policy_ac import proof as off_policy_proof
from nervex.policy.tests.test_offline import CliffEnv, cautious, learn, patient, record
from nervex.policy.tests.toy_control import DepositEnv, uphill
from nervex.policy.tests.toy_envs import TemptationEnv
from nervex.utils import POLICY_REGISTRY
from nervex.utils.class_config import merge_config

Run = Callable[[type], float]
Broken = dict[str, Callable[[type], type]]
UPHILL: Broken = {'loss uphill': wrong_sign}
BOTH: Broken = {**UPHILL, 'no bootstrap': no_bootstrap}
ACTOR_CRITIC: Broken = {
    'critic uphill': lambda cls: uphill(cls, '_critic_loss'),
    'actor uphill': lambda cls: uphill(cls, '_actor_loss'),
    'no bootstrap': no_bootstrap,
}


def trained(env: type, cfg: dict) -> Run:
    """The result of a training run of a policy class."""
    return lambda cls: train(cls, env, cfg).final_return


def proofs(folder: str) -> Iterator[tuple[str, str, float, Run, Broken]]:
    """Policy, problem, best return, how it is run, how it is broken."""
    yield 'dqn', 'temptation', 1, trained(TemptationEnv, LEARNS), BOTH
    for name in test_value_policies.PROOFS:
        policy, cfg = test_value_policies.proof(name)
        broken: Broken = BOTH
        if policy == 'r2d2':  # its sequences know by themselves where an episode ends
            broken = {**UPHILL, 'no bootstrap': functools.partial(_with, learn=dict(algo=dict(discount_factor=0.0)))}
        yield name, 'temptation', 1, trained(TemptationEnv, cfg), broken
    for name in test_on_policy_ac.PROOFS:
        broken = {**UPHILL, 'no bootstrap': test_on_policy_ac.no_bootstrap}
        yield name, 'temptation', 1, trained(TemptationEnv, test_on_policy_ac.proof(name)), broken
    broken = {**UPHILL, 'no bootstrap': test_on_policy_ac.no_bootstrap}
    yield 'ppo_recurrent', 'temptation', 1, trained(TemptationEnv, test_ppo_recurrent.proof(1)), broken
    broken = {**UPHILL, 'no bootstrap': test_impala.no_bootstrap}
    cfg = test_impala.proof(test_impala.until(1))
    yield 'impala', 'temptation', 1, trained(TemptationEnv, cfg), broken
    for name in NAMES:
        yield name, 'deposit', 1, trained(DepositEnv, off_policy_proof(name)), ACTOR_CRITIC
    yield 'sac_discrete', 'temptation', 1, trained(TemptationEnv, DISCRETE), ACTOR_CRITIC

    expert = record(f'{folder}/expert', TemptationEnv(), patient)
    yield 'il', 'temptation, expert data', 1, lambda cls: learn(cls, TemptationEnv, expert), UPHILL
    anything = record(f'{folder}/any', TemptationEnv(), test_offline.any_action, 600)
    settings = dict(
        policy=dict(learn=dict(algo=dict(cql_alpha=0.02, target_update_freq=50))),
        commander=dict(max_train_iter=800),
    )
    yield 'cql', 'temptation, random data', 1, lambda cls: learn(cls, TemptationEnv, anything, **settings), BOTH
    near = record(f'{folder}/near', CliffEnv(), cautious, 300)
    careful = dict(policy=dict(learn=dict(algo=dict(bc_alpha=0.3))))
    broken = {name: ACTOR_CRITIC[name] for name in ('critic uphill', 'actor uphill')}
    random = record(
        f'{folder}/random', DepositEnv(), lambda env, obs, rng: rng.uniform(-1, 1, 2).astype('float32'), 600
    )
    bold = dict(
        policy=dict(learn=dict(algo=dict(bc_alpha=20.0, target_theta=0.05))), commander=dict(max_train_iter=800)
    )
    yield 'td3_bc', 'deposit, random data', 1, lambda cls: learn(cls, DepositEnv, random, **bold), ACTOR_CRITIC
    selective = test_offline.SELECTIVE
    yield (
        'implicit_q',
        'deposit, random data',
        1,
        lambda cls: learn(cls, DepositEnv, random, **selective),
        ACTOR_CRITIC,
    )
    doubtful = test_offline.DOUBTFUL
    yield 'cql_continuous', 'cliff', 1.3, lambda cls: learn(cls, CliffEnv, near, **doubtful), broken
    yield 'td3_bc', 'cliff', 1.13, lambda cls: learn(cls, CliffEnv, near, **careful), broken


def _with(cls: type, **settings: Any) -> type:
    """The same policy with other settings."""

    class Changed(cls):
        def __init__(self, cfg: dict, *args: Any, **kwargs: Any) -> None:
            super().__init__(merge_config(cfg, settings), *args, **kwargs)

    return Changed


def table(chosen: list[str]) -> Iterator[str]:
    """The rows of the table, as they are found."""
    yield '| policy | problem | best return | as it is | broken |'
    yield '|---|---|---|---|---|'
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, problem, best, run, broken in proofs(folder):
            if chosen and name.split()[0] not in chosen:
                continue
            cls = POLICY_REGISTRY.get(name.split()[0])
            found = ', '.join(f'{how} {run(change(cls)):.2f}' for how, change in broken.items())
            yield f'| `{name}` | {problem} | {best} | {run(cls):.2f} | {found} |'


if __name__ == '__main__':
    torch.set_num_threads(1)
    for line in table(sys.argv[1:]):
        sys.stdout.write(line + '\n')
        sys.stdout.flush()
