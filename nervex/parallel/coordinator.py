"""The coordinator: hands tasks to the roles, passes references on, and reacts to what they answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nervex.interaction import Task
from nervex.interaction.exception import DataLost
from nervex.parallel.blocks import Header
from nervex.parallel.roster import Slot
from nervex.run.state import SaveSchedule

if TYPE_CHECKING:
    from nervex.parallel.run import ParallelRun

WAIT_S = 0.5  # for answers, before the clock is looked at
_EVALUATION_S = 20.0  # for an evaluation, before actors go on anyway


class Coordinator:
    """
    Overview:
        ``step`` waits for answers, takes them, and gives out work. Knows nothing of processes.
    Arguments:
        - run (:obj:`ParallelRun`): what it works with, and who is told of evaluations and of a resume
    """

    def __init__(self, run: ParallelRun) -> None:
        self._run, self._log = run, run.log.info
        self.cfg, self.plan, self.pace, self.tally = run.cfg, run.plan, run.pace, run.tally
        self.roster, self.commander, self.evaluator = run.roster, run.commander, run.evaluator
        self.weights: Any = None  # a reference to the newest
        self.version = -1
        self.weights_iter = 0
        self.solved = False
        self.last_checkpoint: str | None = None
        self.saved_iter: int | None = None
        self._evaluations = 0  # snapshots and evaluations under way
        self._judged: tuple[int, float] | None = None  # env steps and time when the newest evaluation began
        self._served = self._dealt = 0
        self._draining = self._ended = False
        self.paused = False  # nothing is given out
        self._oldest = 0  # version of the weights that blocks must have been collected by
        interval, resume = self.cfg.parallel.save_s, self.cfg.learner.resume
        self._schedule = SaveSchedule(resume.interval_s if interval is None else interval, resume.max_cost)
        self.roster.on_begun, self.roster.on_lost = self._begun, self._lost

    # ---- the loop ----
    def step(self, timeout_s: float = WAIT_S) -> None:
        """Wait for answers, take them, give out work."""
        self.roster.answers(timeout_s)
        learner = self.learner()
        if learner is None or self._draining or self.solved or self.paused:
            return
        if self.weights is None and not self.learns:
            self._send_learn([], 0)
        while self.weights is not None and self.learns < self.pace.learn_calls:
            updates = self.pace.next_learn()
            if updates is None:
                break
            blocks = list(self.pace.waiting)
            self.pace.waiting.clear()
            self._send_learn(blocks, updates)
        if self.weights is not None:
            self._ask_evaluators(learner)
            self._keep_actors_busy()

    @property
    def learns(self) -> int:
        """Calls that the first learner has not answered."""
        return sum(task.method == 'learn' for slot in self.roster.of('learner')[:1] for task in slot.work())

    def forget_older(self) -> None:
        """The learner has begun anew: blocks by the weights that it had are left out."""
        self._oldest, self.weights = self.version + 1, None
        self.pace.waiting.clear()

    def learner(self) -> Slot | None:
        """The first learner, if all of them are there."""
        learners = self.roster.of('learner')
        return learners[0] if len(learners) == self.plan.learners else None

    # ---- collecting ----
    def _keep_actors_busy(self) -> None:
        """One call at a time to whoever has fewest outstanding, and of these to whoever waited longest."""
        if self._waits_for_evaluation():
            return
        idle = deque(sorted(self.roster.of('actor'), key=lambda slot: (len(slot.work()), slot.served)))
        while idle:
            slot = idle.popleft()
            amount = self.pace.to_collect(len(slot.work()))
            if amount > 0 and self._send_collect(slot, amount):
                idle.append(slot)

    def _waits_for_evaluation(self) -> bool:
        """
        Overview:
            An evaluation may end the run. Like serial mode, actors wait for it, as long as what they would collect
            meanwhile is more than ``max_lead`` of all that was collected; but not for one that takes very long.
        """
        lead, tally, plan = self.cfg.parallel.max_lead, self.tally, self.plan
        if self._judged is None or lead is None:
            return False
        steps, since = self._judged
        if self.roster.carrier.now() - since > _EVALUATION_S:
            return False
        more = plan.amount * (tally.total_step / max(tally.total_episode, 1) if plan.episodes else 1)
        return tally.total_step - steps + more > lead * tally.total_step

    def _send_collect(self, slot: Slot, amount: int) -> bool:
        if slot.task is None:
            slot.task = self.commander.get_actor_task()
            if slot.task is None:
                return False
            self._log(f'task {slot.task["task_id"]} goes to {slot.name}')
        request = {
            'version': self.version,
            'train_iter': self.weights_iter,
            'setting': self.commander.collect_setting(slot.task),
            'rivals': self.commander.rivals(),
            'episodes' if self.plan.episodes else 'rows': amount,
        }
        weights = self.weights if slot.version != self.version else None
        slot.version = self.version
        self._served += 1
        slot.served = self._served
        self.pace.under_way += amount
        self.roster.ask(slot, 'collect', slot.task, request, weights, returns=2, done=self._collected, amount=amount)
        return True

    def _collected(self, task: Task) -> None:
        header, slot = task.result, task.hold
        self.tally.collected(header)
        fresh = header.version >= self._oldest
        self.pace.answered(task.context['amount'], header if fresh else None, task.beside)
        if slot.task is not None and self.commander.update_actor_info(slot.task, header):
            self.commander.finish_actor_task(slot.task, {'eval_flag': False})
            slot.task = None

    # ---- learning ----
    def _send_learn(self, blocks: list[tuple[Header, Any]], updates: int) -> None:
        notes = self._run.notes() if self._schedule.due() and self.weights is not None else None
        if notes is not None:
            self._schedule.put_off()
        request = {
            'updates': None if updates < 0 else updates,
            'envstep': self.tally.total_step,
            'setting': self.commander.learn_setting(),
            'notes': notes,
            'publish': self.weights is None,
        }
        learners = self.roster.of('learner')
        for rank, learner in enumerate(learners):  # blocks are dealt out in turn
            mine = [block for k, block in enumerate(blocks) if (self._dealt + k) % len(learners) == rank]
            headers, refs = [h for h, _ in mine], [ref for _, ref in mine]
            context = {'blocks': mine, 'updates': updates}
            self.roster.ask(learner, 'learn', headers, request, *refs, returns=2, done=self._learned, **context)
        self._dealt += len(blocks)

    def _learned(self, task: Task) -> None:
        info, rank = task.result, task.hold.spec.index
        self.tally.learned(info, rank)
        if info['refused']:
            self._log(f'{task.hold.name} refused {info["refused"]} blocks that it had')
        if rank:
            return
        self.pace.learned(task.context['updates'], info)
        if info['published']:
            self.weights = task.beside
            self.version += 1
            self.weights_iter = info['train_iter']
        if info['saved']:
            self.saved_iter = info['saved']['train_iter']
            self._schedule.took(info['saved']['seconds'])

    # ---- evaluating ----
    def _ask_evaluators(self, learner: Slot, force: bool = False) -> None:
        evaluators = self.roster.of('evaluator')
        for slot in evaluators:
            if slot.task is None and not slot.work() and self._evaluations < len(evaluators):
                slot.task = task = self.commander.get_actor_task(eval_flag=True, force=force)
                if task is None:
                    return
                self.evaluator.asked(self.tally.train_iter)
                self._evaluations += 1
                self._judged = (self.tally.total_step, self.roster.carrier.now()) if self.tally.train_iter else None
                self.roster.ask(learner, 'snapshot', returns=2, done=self._remembered, to=slot, evaluation=task)
                return

    def _remembered(self, task: Task) -> None:
        slot, evaluation = task.context['to'], task.context['evaluation']
        if slot.task is not evaluation:  # the evaluator died meanwhile
            self._evaluations -= 1
            self._judged = None
            return
        request = {'train_iter': task.result['train_iter'], 'env_step': self.tally.total_step}
        self.roster.ask(slot, 'evaluate', evaluation, request, task.beside, done=self._evaluated, evaluation=evaluation)

    def _evaluated(self, task: Task) -> None:
        answer = task.result
        self._evaluations -= 1
        self._judged = None
        task.hold.task = None
        if self.solved:
            return  # the one that decided is the last one
        result = answer['result']
        self.evaluator.record(answer['train_iter'], answer['env_step'], result)
        learner = self.learner()
        if self.evaluator.is_new_best() and answer['train_iter'] > 0 and learner is not None:
            self.roster.ask(learner, 'keep', answer['train_iter'], done=self._kept)
        self.solved = self.commander.finish_actor_task(task.context['evaluation'], answer)
        self._run.evaluated(result)

    def _kept(self, task: Task) -> None:
        self.last_checkpoint = task.result['last_checkpoint']

    # ---- beginning, end ----
    def _begun(self, task: Task) -> None:
        counters, slot = task.result, task.hold
        if slot.spec.kind != 'learner' or slot.spec.index:
            return  # the first learner speaks for all
        notes = counters['notes']
        self.tally.train_iter = counters['train_iter']
        self.last_checkpoint = counters['last_checkpoint']
        slot.task = self.commander.get_learner_task()
        self._log(f'task {slot.task["task_id"]} goes to {slot.name}, at update {counters["train_iter"]}')
        self.weights = None
        self._schedule.took(0.0)  # a saving that was asked for went with the last one
        if slot.spec.resume_iter is not None:
            self.pace.restarted(counters)
        if notes is not None and not self.tally.blocks:  # the run goes on from an earlier process
            self._run.resumed_from(notes)

    def _until(self, done: Callable[[], bool], timeout_s: float) -> bool:
        until = self.roster.carrier.now() + timeout_s
        while not done() and self.roster.carrier.now() < until:
            self.step(min(WAIT_S, timeout_s))
        return done()

    def drain(self, timeout_s: float) -> None:
        """Give out nothing more, and wait until the learner has done what it was asked for."""
        self._draining = True
        self._until(lambda: self.learner() is not None and not self.learns, timeout_s)

    def final_evaluation(self, timeout_s: float) -> None:
        """Evaluate what the learner ended with, if there are evaluators and they have not done so."""

        def settled() -> bool:
            there = self.roster.of('evaluator', ready=False)
            return self.solved or not (
                self._evaluations or (there and all(slot.task or not slot.ready for slot in there))
            )

        until = self.roster.carrier.now() + timeout_s
        self.drain(timeout_s)
        self._until(settled, until - self.roster.carrier.now())
        learner = self.learner()
        if learner is not None and not self.solved and not self.evaluator.knows(self.tally.train_iter):
            self._ask_evaluators(learner, force=True)
            self._until(lambda: not self._evaluations, until - self.roster.carrier.now())

    def finish(self, timeout_s: float) -> bool:
        """Last checkpoint, and the complete state; whether the learner answered in time."""
        self._draining, self._ended = True, False
        if self.learner() is None:
            return False
        for slot in reversed(self.roster.of('learner')):
            self.roster.ask(slot, 'finish', self._run.notes(), done=self._finished)
        return self._until(lambda: self._ended, timeout_s)

    def _finished(self, task: Task) -> None:
        if not task.hold.spec.index:
            self._kept(task)
            self.roster.on_told(task.result['told'])
            self._ended = True

    # ---- what goes wrong ----
    def _lost(self, task: Task) -> None:
        """What a role was asked for will not be done by it: it died, or its data went with a machine."""
        context, slot = task.context, task.hold
        gone = isinstance(task.error, DataLost)
        if gone:
            self._log(f'{slot.name} did not get its data ({task.error})')
        if task.method == 'collect':
            self.pace.answered(context['amount'])
            if gone:
                self.weights = None
            elif slot.task is not None:
                self.commander.notify_fail_actor_task(slot.task)
                slot.task = None
        elif task.method == 'learn':
            blocks = context['blocks']
            if gone:  # one of these blocks is, or all are: each is tried alone
                self.pace.learned(context['updates'], {'updates': 0})
                self.tally.lost_blocks += len(blocks) == 1
                for block in blocks if len(blocks) > 1 else []:
                    self._send_learn([block], 0)
            else:
                self.pace.waiting.extendleft(reversed(blocks))
        elif task.method in ('snapshot', 'evaluate'):
            self._evaluations -= 1
            self._judged = None
            self.commander.notify_fail_actor_task(context['evaluation'])
            self.evaluator.asked(None)
            evaluator = context.get('to', slot)
            if evaluator.task is context['evaluation']:
                evaluator.task = None
        if slot.spec.kind == 'learner' and slot.task is not None and not gone:
            self.commander.notify_fail_learner_task(slot.task)
            slot.task = None
