"""The step of all envs at once, in the workers and in this process: what the sync managers do all the time."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nervex.envs.hosting.actions import ActionRows, rows_of
from nervex.envs.hosting.host import EnvHost, Events
from nervex.envs.hosting.shared import STEP_ALL
from nervex.worker.actor.env_manager.worker_pool import WorkerPool

FIRST_LOOKS = range(64)  # some 2 us, before anything is done about a worker that is not ready yet


def make_lockstep(
    pool: WorkerPool,
    action_rows: ActionRows,
    host: EnvHost | None,
    own: int,
    timeouts: tuple[float, float],
    collect: Callable,
) -> Callable[[int, Any], Events | None]:
    """
    Overview:
        A function (slot, actions) -> events. It is a closure, as all that it does beside the envs takes a few
        microseconds, and looking things up would be a good part of that.
    Arguments:
        - host (:obj:`EnvHost | None`): has the first ``own`` envs, which are stepped while the workers step the others
        - timeouts (:obj:`tuple`): seconds for a step and for a reset
        - collect (:obj:`Callable`): (slot, workers, lost, events) -> events; for what is told by more than numbers
    """
    control, everybody = pool.control, pool.everybody
    kinds, slots, asked, done = control.kind, control.slot, control.asked, control.done
    asleep, news, memory = control.asleep, control.news, control.actions
    block, split, wake = action_rows.block, action_rows.split, pool.wake
    looks = FIRST_LOOKS if pool.spin else ()

    def step(slot: int, actions: Any) -> Events | None:
        actions = block(actions)
        if memory is not None:
            memory[...] = actions
        for w in everybody:
            kinds[w] = STEP_ALL
            slots[w] = slot
            asked[w] += 1
            if asleep[w]:
                wake(w)
        if memory is None:
            for w in everybody:
                pool.send(w, rows_of(actions, slice(pool.workers[w].ids.start, pool.workers[w].ids.stop)))
        events = None
        if own:
            rows = actions[:own] if type(actions) is np.ndarray else rows_of(actions, slice(0, own))
            events = host.step(slot, split(rows, host.action_form))
        lost: dict = {}
        for w in everybody:
            number = asked[w]
            for _ in looks:
                if done[w] == number:
                    break
            else:
                lost = pool.wait(everybody, *timeouts)
                break
        if lost or any(news):
            return collect(slot, everybody, lost, events)
        return events

    return step
