"""How much of what a parallel run needs, and who waits for whom: pure counting."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from easydict import EasyDict

if TYPE_CHECKING:
    from nervex.parallel.blocks import Header

_KINDS = ('actor', 'evaluator', 'learner')
_FIRST_UPDATE_S, _FIRST_UNIT_S = 1e-3, 2e-3  # of an update and of a sample, before the first was measured
_UNDER_WAY = 0.25  # of what the buffer holds: more would make the data older than the buffer says
LEAD = 0.05  # the default of parallel.max_lead


@dataclass(frozen=True)
class Plan:
    """How many of what, and how much of it at a time."""

    actors: int
    envs_per_actor: int
    evaluators: int
    learners: int
    rounds: bool  # collecting and learning in turn
    episodes: bool  # what is collected is counted in episodes, else in samples
    amount: int  # samples (or episodes) of one round of the serial loop
    train_step: int  # updates of one round of the serial loop
    batch: int  # rows of one update
    rows_wanted: int  # rows in the buffer before the first update
    updates_per_unit: float | None  # updates per sample (or episode) collected; None: no bound
    capacity: int | None = None  # rows that the smallest buffer holds

    @property
    def share(self) -> int:
        """What one actor collects of a round."""
        return math.ceil(self.amount / self.actors)


def make_plan(cfg: EasyDict, env_setting: Any = None) -> Plan:
    """Fill in what ``cfg.parallel`` leaves open."""
    parallel, learn = cfg.parallel, cfg.policy.learn
    envs = len(env_setting[1]) if env_setting is not None else cfg.env.actor_env_num
    actors = parallel.actor_num or max(1, min(max(2, os.cpu_count() or 1), envs))
    batch = largest(learn.batch_size if 'batch_size' in learn else None) or 1
    amount = cfg.actor.n_sample or cfg.actor.n_episode
    wanted = max(batch, learn.init_data_count if 'init_data_count' in learn else 0)
    buffers = [cfg.replay_buffer[name] for name in cfg.replay_buffer.buffer_name]
    for buffer in buffers:
        wanted = max(wanted, buffer.replay_start_size, math.ceil(batch * buffer.min_sample_ratio))
    steps = learn.train_step if 'train_step' in learn else 1
    per_unit = None if parallel.ratio == 0 else steps / amount if parallel.ratio is None else parallel.ratio / batch
    return Plan(
        actors=actors,
        envs_per_actor=parallel.envs_per_actor or math.ceil(envs / actors),
        evaluators=0 if cfg.evaluator.eval_freq is None else parallel.evaluator_num,
        learners=parallel.learner_num,
        rounds=cfg.policy.on_policy if parallel.synchronous is None else parallel.synchronous,
        episodes=cfg.actor.n_sample is None and not parallel.ratio,
        amount=amount,
        train_step=steps,
        batch=batch,
        rows_wanted=wanted,
        updates_per_unit=per_unit,
        capacity=min((buffer.meta_maxlen for buffer in buffers), default=None),
    )


def resources_of(cfg: EasyDict, kind: str, here: bool = False) -> dict[str, Any]:
    """What one role of a kind holds; ``here`` says that all run on this machine, whose GPU may be missing."""
    resources = dict(cfg.parallel.resources[kind])
    if resources['num_gpus'] is None:
        resources['num_gpus'] = int(cfg.policy.use_cuda and (torch.cuda.is_available() or not here))
    return resources


def largest(size: Any) -> int | None:
    """The rows of one update, where there may be several buffers."""
    return max(size.values()) if isinstance(size, dict) else size


def role_seed(seed: int, kind: str, index: int, incarnation: int) -> int:
    """A seed that no other role of the run has, nor the same role before it was started anew."""
    entropy = [seed, _KINDS.index(kind), index, incarnation]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0]) % 2**31


class Pace:
    """
    Overview:
        Who waits for whom. Both kinds count in *units*: samples, or episodes.
    Arguments:
        - cfg (:obj:`Any`): the section ``parallel``
        - measure (:obj:`bool`): fit the size of calls to how long they take; without it a run repeats itself
    """

    def __init__(self, plan: Plan, cfg: Any = None, measure: bool = True) -> None:
        self.plan, self.cfg, self.measure = plan, cfg, measure
        self.waiting: deque[tuple[Header, Any]] = deque()  # blocks that the learner has not been sent
        self.under_way = 0  # units that actors were asked for

    def units(self, headers: Iterable[Header]) -> int:
        """Units of these blocks."""
        return sum(len(header.returns) if self.plan.episodes else header.rows for header in headers)

    @property
    def in_line(self) -> int:
        """Units of the blocks that wait."""
        return self.units(header for header, _ in self.waiting)

    def answered(self, asked: int, header: Header | None = None, block: Any = None) -> None:
        """An actor that was asked for so many units answered with a block, or died instead."""
        self.under_way -= asked
        if header is not None:
            self.waiting.append((header, block))


class Rounds(Pace):
    """
    Overview:
        On-policy: the actors share a round; when all of it is there, the learner learns from it, and the next round
        begins with the new weights. What an actor that died should have collected, the next idle one collects.
    """

    learn_calls = 1
    _learning = False

    def to_collect(self, outstanding: int) -> int:
        """How much an actor with so many outstanding calls is to collect now; 0: nothing."""
        if outstanding or self._learning:
            return 0
        return max(min(self.plan.share, self.plan.amount - self.in_line - self.under_way), 0)

    def next_learn(self) -> int | None:
        """Updates of a call with the blocks that wait; -1: a whole round; None: no call now."""
        if self._learning or self.in_line < self.plan.amount:
            return None
        self._learning = True
        self.waiting = deque(sorted(self.waiting, key=lambda block: block[0].actor))  # whoever was first
        return -1

    def learned(self, updates: int, info: dict[str, Any]) -> None:
        """A call was answered."""
        self._learning = False

    def restarted(self, counters: dict[str, Any]) -> None:
        """The learner was started anew; blocks that wait for it are sent again."""
        self._learning = False


class Overlap(Pace):
    """
    Overview:
        Collecting and learning at the same time. Updates that are due follow from what was inserted, as in serial mode.
        Actors wait while more than ``queue`` calls of all of them are not learned from, and while they are ahead of the
        learner by more than a part of what it has (``max_lead``): a sample more or less in twenty changes little, where
        hundreds of samples by the first weights, before the first update, would cost as many.
    """

    learn_calls = 3  # one that runs and two more, so that the learner goes on while the coordinator has no processor

    def __init__(self, plan: Plan, cfg: Any, measure: bool = True) -> None:
        super().__init__(plan, cfg, measure)
        self._inserted = self._rows = 0  # units and rows that the learner was sent
        self._start: int | None = None  # what was inserted when learning began
        self._done = 0  # updates, with those that were asked for
        self._learning = 0  # updates that were asked for and not answered
        self._update_s, self._unit_s = _FIRST_UPDATE_S, _FIRST_UNIT_S
        self._unit_bytes = 1.0
        self._starved = False  # the buffer did not hold enough for what was due: wait for more

    def amount(self) -> int:
        """How much one collect call is about: what takes ``block.seconds``, or keeps the learner busy for a while."""
        block, plan = self.cfg.block, self.plan
        if plan.episodes:
            return plan.share
        if block.rows is not None:
            return block.rows
        amount = min(block.seconds / self._unit_s, self._lead() / (2 * plan.actors))
        if plan.updates_per_unit:
            amount = min(amount, self.cfg.learn_s / (self._update_s * plan.updates_per_unit))
        if plan.capacity is not None:
            amount = min(amount, plan.capacity * _UNDER_WAY / (self.cfg.queue * plan.actors))
        return int(max(min(amount, block.max_bytes / self._unit_bytes), plan.share, 1))

    def _owed(self, units: float) -> float:
        """Updates that are due when so much has been inserted, and not yet asked for."""
        if self._start is None or self.plan.updates_per_unit is None:
            return 0.0
        return self.plan.train_step + self.plan.updates_per_unit * (units - self._start) - self._done

    def _lead(self) -> float:
        """How much may be collected before the learner has made the updates that belong to it."""
        share, plan = self.cfg.max_lead, self.plan
        if share is None or plan.updates_per_unit is None:
            return math.inf
        return max(plan.amount, share * max(self._inserted, 0 if plan.episodes else plan.rows_wanted))

    def to_collect(self, outstanding: int) -> int:
        """How much an actor with so many outstanding calls is to collect now; 0: nothing."""
        amount, plan, limit = self.amount(), self.plan, self.cfg.queue * self.plan.actors
        if outstanding >= self.cfg.outstanding or len(self.waiting) >= limit:
            return 0
        total = self.under_way + self.in_line + self._inserted
        if self._start is None:
            per_row = self._inserted / self._rows if self._rows else 1.0  # an episode has many
            return amount if total < plan.rows_wanted * per_row + min(self._lead(), amount * limit) else 0
        return amount if plan.updates_per_unit is None or self._has_room(total, amount, limit) else 0

    def _has_room(self, total: float, amount: int, limit: int) -> bool:
        """Whether so much more would not wait too long for its updates."""
        plan, owed = self.plan, self._owed(total)
        per_unit = plan.updates_per_unit or 0.0
        if owed > max(per_unit * amount * limit, 1.0):  # below one update nothing can be worked off
            return False
        if self._starved:
            return True
        small = math.inf if plan.capacity is None else plan.capacity * _UNDER_WAY
        lead = max(min(small, self._lead()) - amount, amount * (plan.actors - 1))
        return owed + self._learning <= max(per_unit * lead, 1.0)

    def answered(self, asked: int, header: Header | None = None, block: Any = None) -> None:
        """As of both kinds; what it took is measured."""
        super().answered(asked, header, block)
        if header is not None and (units := self.units([header])):
            self._unit_s += self.measure * 0.3 * (header.seconds / units - self._unit_s)
            self._unit_bytes = max(header.nbytes / units, 1.0)

    def next_learn(self) -> int | None:
        """Updates of a call with the blocks that wait; None: no call now."""
        total, rows = self._inserted + self.in_line, self._rows + sum(header.rows for header, _ in self.waiting)
        if self._start is None and rows >= self.plan.rows_wanted:
            self._start = total
        chunk = max(1, int(self.cfg.learn_s / self._update_s))
        if self._start is None or (self._starved and not self.waiting):
            updates = 0
        elif self.plan.updates_per_unit is None:
            updates = chunk
        else:
            updates = max(min(math.floor(self._owed(total) + 1e-9), chunk), 0)
        if not updates and not self.waiting:
            return None
        self._inserted, self._rows = total, rows
        self._done += updates
        self._learning += updates
        return updates

    def learned(self, updates: int, info: dict[str, Any]) -> None:
        """A call was answered; updates that could not be done are due again, and rows that were left out owe none."""
        if not self.plan.episodes:
            left_out = info.get('stale', 0) * self.plan.learners
            self._inserted, self._rows = self._inserted - left_out, self._rows - left_out
        self._done -= updates - info['updates']
        self._learning -= updates
        self._starved = info['updates'] < updates
        if info['updates']:
            self._update_s += self.measure * 0.3 * (info['learn_seconds'] / info['updates'] - self._update_s)

    def restarted(self, counters: dict[str, Any]) -> None:
        """The learner was started anew: what is due counts from what it has."""
        self._inserted = self._rows = counters['count'] * self.plan.learners
        self._start = None if self._rows < self.plan.rows_wanted else self._inserted
        self._done = self.plan.train_step if self._start is not None else 0
        self._learning = 0
        self._starved = False


def given_up(cfg: Any, plan: Plan) -> str | None:
    """
    Overview:
        One line, if settings of the user give up what the defaults keep: that a parallel run needs about as many env
        steps as a serial one.
    """
    own, found = cfg.parallel, []
    if plan.rounds:
        return None
    if own.synchronous is False and cfg.policy.on_policy:
        found.append('synchronous=False (an on-policy method learns from older policies)')
    serial = plan.train_step / plan.amount
    if plan.updates_per_unit is None:
        found.append(f'ratio=0 (nobody waits; in serial mode there are {serial:g} updates a sample)')
    elif own.ratio is not None and plan.updates_per_unit < serial:
        found.append(f'ratio={own.ratio:g} (serial mode has {serial * plan.batch:g})')
    if own.max_lead is None or own.max_lead > LEAD:
        found.append(f'max_lead={own.max_lead} (more than {LEAD:g} is collected by older weights)')
    if own.block.rows is not None and own.block.rows * plan.actors > max(plan.amount, LEAD * plan.rows_wanted):
        found.append(f'block.rows={own.block.rows} (an actor learns of new weights once in so many samples)')
    said = ', '.join(f'parallel.{setting}' for setting in found)
    return f'this run may need more env steps than a serial one, because of {said}' if found else None
