"""Actors that explore differently, and say how much their samples surprise: Ape-X."""

import numpy as np
import pytest

from nervex.parallel.tests.running import build_parallel

pytest.importorskip('ray')
pytestmark = pytest.mark.slow

APEX = ('policy.use_priority=True', 'policy.collect.algo.first_priority=True', 'policy.command.eps_spread=7.0',
        'parallel.actor_num=2')  # fmt: skip


def test_actors_explore_each_in_its_way_and_samples_come_with_priorities_until_it_is_solved(tmp_path):
    first = []
    with build_parallel('cartpole_dqn', 0, overrides=(f'exp_name={tmp_path}', *APEX)) as run:
        run.begin()
        get = run.roster.carrier._ray.get
        while sum(slot.served > 0 for slot in run.roster.of('actor')) < 2:  # who was asked knows its epsilon
            run.coordinator.step(0.1)
            assert run.going_on()
        for slot in run.roster.of('actor'):
            eps = slot.handle.actor.__ray_call__.remote(
                lambda host: host._role.actor.policy.forward.__self__._sampler_kwargs(list(range(4)))['eps'].tolist()
            )
            first.extend(get(eps))
        take, sent = run.coordinator._collected, []

        def noted(task):
            if len(sent) < 20:
                sent.append(np.array(get(task.beside)['priority']))
            take(task)

        run.coordinator._collected = noted
        while run.going_on():
            run.coordinator.step(0.1)
        result = run.finish()
    assert len(set(first)) == len(first) == 8 and sorted(first, reverse=True) == first
    assert sent and all((priority >= 0).all() and len(np.unique(priority)) > 1 for priority in sent)
    assert result.solved
