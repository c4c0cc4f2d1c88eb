"""The commanders of parallel runs: which tasks there are, and what their results mean."""

from __future__ import annotations

import uuid
from typing import Any

from nervex.league.settings import LeagueSettings
from nervex.utils import COMMANDER_REGISTRY
from nervex.utils.declare import setting, settings
from nervex.worker.coordinator.base_serial_commander import BaseSerialCommander

Task = dict[str, Any]


@COMMANDER_REGISTRY.register('naive')
class NaiveCommander(BaseSerialCommander):
    """
    Overview:
        Every actor collects until it dies, every evaluator evaluates when ``eval_freq`` updates went by. A task is a
        dict with ``task_id`` and ``eval_flag``; whatever a subclass puts beside them (opponents, env settings) reaches
        the role. A commander of leagues ends tasks (``update_actor_info`` answers True) and gives others.
    Interfaces:
        get_actor_task, get_learner_task, finish_actor_task, finish_learner_task, notify_fail_actor_task,
        notify_fail_learner_task, update_actor_info, collect_setting, rivals, learn_setting, out_of_budget
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tasks: dict[str, Task] = {}  # those that are being done
        self.failed = 0

    # ---- tasks ----
    def get_actor_task(self, eval_flag: bool = False, force: bool = False) -> Task | None:
        """A task for an actor, or for an evaluator; None: there is none now. ``force``: an evaluation is due anyway."""
        if not eval_flag:
            return None if self.selfplay is not None and not self.selfplay.ready else self._new_task(eval_flag=False)
        if force or self._evaluator.due(self._learner.train_iter):
            return self._new_task(eval_flag=True, setting=self.policy.get_setting_eval(self.info()))
        return None

    def get_learner_task(self) -> Task:
        """What the learner learns; one task lasts for the run."""
        return self._new_task(learn=True)

    def _new_task(self, **content: Any) -> Task:
        task = {'task_id': uuid.uuid4().hex, **content}
        self.tasks[task['task_id']] = task
        return task

    def collect_setting(self, task: Task) -> dict[str, Any]:
        """Exploration for the next collect call of this task."""
        return self.ask('collect')

    def rivals(self) -> dict[str, Any] | None:
        """Whom the games of the next collect call are against, in a league."""
        return None if self.selfplay is None else self.selfplay.rivals()

    def learn_setting(self) -> dict[str, Any]:
        """Settings for the next call of the learner."""
        return self.ask('learn')

    # ---- results ----
    def update_actor_info(self, task: Task, header: Any) -> bool:
        """Told after every block; True ends the task."""
        if self.selfplay is not None:
            self.selfplay.record(header)
        return False

    def finish_actor_task(self, task: Task, result: dict[str, Any] | None = None) -> bool:
        """A task was done. Of an evaluation: whether the run is solved."""
        self.tasks.pop(task['task_id'], None)
        return bool(result and result.get('reached') and result['train_iter'] > 0)

    def finish_learner_task(self, task: Task, info: dict[str, Any] | None = None) -> None:
        """The learner has done its task."""
        self.tasks.pop(task['task_id'], None)

    def notify_fail_actor_task(self, task: Task) -> None:
        """The role that did this task died; another task is asked for in its place."""
        self.tasks.pop(task['task_id'], None)
        self.failed += 1

    def notify_fail_learner_task(self, task: Task) -> None:
        """The learner died; it goes on with another task from its last saved state."""
        self.notify_fail_actor_task(task)


@COMMANDER_REGISTRY.register('league')
class LeagueCommander(BaseSerialCommander):
    """
    Overview:
        ``commander_type: league``: a learner for each active player of a league; every game that begins meets whom the
        league says. In serial mode they take turns of ``turn_rounds`` rounds of collecting and learning, in parallel
        mode that is how often the others get to know what a player has learned. The limits of the run
        (``max_env_step``, ...) hold for each learner.
    """

    config = settings(
        commander_type='league',
        selfplay=setting(None, 'None', 'whom games are against is up to the league'),
        league=setting({}, LeagueSettings(), 'settings of the league, and a section for each type of its players'),
        turn_rounds=setting(10, 'int >= 1', 'rounds of the turn of a player, or between two of its checkpoints'),
    )
    many_learners = True

    @classmethod
    def learners(cls, cfg: Any) -> int:
        """One for each active player."""
        return len(cfg.league.player_category) * (sum(cfg.league.active_players.values()) or 1)
