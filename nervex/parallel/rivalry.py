"""What is between the run of a player and whoever chooses its opponents; and self-play in parallel mode."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nervex.interaction import Task
from nervex.parallel.blocks import Header, Ledger
from nervex.run.opponents import SelfPlay
from nervex.run.state import KEPT
from nervex.utils.part_state import HasState

if TYPE_CHECKING:
    from nervex.parallel.run import ParallelRun

_DRAWS = 32  # opponents that are drawn for a collect call; games that begin meanwhile are against them in turn


class Rivalry(HasState):
    """
    Overview:
        The ``selfplay`` of the commander of a parallel run: tells actors whom the next games are against, and counts
        how games ended, each block once. A subclass says when it is ``ready``, and after every ``step`` of the
        coordinator may have the learner write a checkpoint.
    Arguments:
        - book (:obj:`Opponents`): who chooses in serial mode, and knows of the games
    Interfaces:
        rivals, record, met, file_of, is_asked, ask; ready, step
    """

    resume_parts: tuple[str, ...] = ('ledger',)  # which blocks have been counted

    def __init__(self, run: ParallelRun, book: Any) -> None:
        self.run, self.book = run, book
        self.doubles = 0  # blocks that told of games twice
        self.ledger = Ledger()
        self._met: dict[int, list[str]] = {}  # whom the games of an actor are against
        run.commander.selfplay = self

    def file_of(self, name: str) -> tuple[str, int]:
        """The checkpoint of a player, and a number that changes when it does; that of a snapshot never does."""
        return os.path.abspath(self.book.file_of(name)), 0

    def rivals(self) -> dict[str, Any]:
        """Whom the next games are against."""
        names = list(self.book.choose(_DRAWS))
        return {'names': names, 'files': {name: self.file_of(name) for name in names}}

    def record(self, header: Header) -> None:
        """How games ended; those that began before an actor was told whom it meets do not count."""
        self._met[header.actor] = header.met
        if self.ledger.take(*header.key):
            known = [game for game in header.games if game[0] != self.book.name]
            self.book.ended([name for name, _ in known], [result for _, result in known])
        else:
            self.doubles += 1

    @property
    def met(self) -> set[str]:
        """Whom games are against, or will be by what actors were sent."""
        calls = [task.args[1] for task in self.run.roster.calls.values() if task.method == 'collect']
        return set().union(*self._met.values(), *(call['rivals']['names'] for call in calls))

    def is_asked(self, *methods: str) -> bool:
        """Whether the learner is not there, or has one of these still to do."""
        learner = self.run.coordinator.learner()
        return learner is None or any(task.method in methods for task in learner.work())

    def ask(self, method: str, *args: Any, done: Any) -> None:
        """Give the learner a task; one that it dies over is given again."""
        self.run.roster.ask(self.run.roster.of('learner')[0], method, *args, done=done)


class ParallelSelfPlay(Rivalry):
    """
    Overview:
        ``commander.selfplay`` in parallel mode: the learner writes its snapshots; payoff, ratings and chance are
        part of what it saves. Files that no saved state needs are removed when it has saved another one.
    """

    def __init__(self, run: ParallelRun, book: SelfPlay) -> None:
        super().__init__(run, book)
        self._noted: set[str] = set()  # snapshots, when notes were last taken
        self._saved: int | None = None

    @property
    def ready(self) -> bool:
        """Whether there is a snapshot."""
        return bool(self.book.league.historical_players)

    def step(self) -> None:
        """Have a snapshot written, if it is time to; remove what no saved state needs."""
        run = self.run
        if self.book.is_due(run.tally.train_iter) and not self.is_asked('publish'):
            self.ask('publish', os.path.abspath(self.book.place('{}')), None, done=self._published)
        if run.coordinator.saved_iter != self._saved:
            self._saved = run.coordinator.saved_iter
            self.book.clean(self._noted | self.met, KEPT)

    def _published(self, task: Task) -> None:
        self.book.admit(task.result['train_iter'], self.run.tally.total_step)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the files."""
        self._noted = {player.player_id for player in self.book.league.historical_players} | self.met
        return {**super().state_dict(), **self.book.own_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from that, or from the state of a serial run."""
        super().load_state_dict(state)
        self.book.load_state_dict(state)
        self.book.clean((), KEPT)
