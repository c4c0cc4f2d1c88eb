"""
A league in parallel mode: the run of each active player has roles of its own, on one carrier; the league stands here.

With each collect call an actor is told whom the next games are against, and where their checkpoints are; with its
block it tells how games ended. Every so often a learner writes its checkpoint, for the others to meet; then the league
may take a snapshot of it, and the player may have to begin anew. The state of the league is saved by itself, at each
snapshot and every few seconds; each learner saves its own.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nervex.envs import TwoSidedEnv
from nervex.interaction import Task
from nervex.parallel.carrier import Carrier
from nervex.parallel.coordinator import WAIT_S
from nervex.parallel.rivalry import Rivalry
from nervex.parallel.run import KEPT_LOGS, ParallelRun, make_carrier
from nervex.run.launch import Launch
from nervex.run.league_home import LeagueHome, check_league
from nervex.run.league_run import LeagueOpponents
from nervex.run.life import RunLife
from nervex.run.opponents import SentOpponents
from nervex.run.result import RunResult
from nervex.run.state import KEPT, STATE_VERSION, SaveSchedule, log_sizes, write_state
from nervex.utils import CheckpointError, ConfigError
from nervex.utils.part_state import HasState


class LeaguePlayer(Rivalry):
    """
    Overview:
        An active player: its run, and what is between its run and the league.
    """

    resume_parts = ('version', 'published_iter', 'reset', 'doubles')

    def __init__(self, league: ParallelLeague, name: str, run: ParallelRun, book: LeagueOpponents) -> None:
        super().__init__(run, book)
        self.name, self.over = name, False
        self._owner, self._home, self._league = league, league.home, league.home.league
        self._player = self._league.player(name)
        self.version = 0  # of its checkpoint: how often that was written
        self.published_iter = -1  # the update that it is of
        self.reset = self._home.start_of(name)  # the checkpoint from which the player has to begin anew
        self._rounds_then = 0.0  # rounds at the newest checkpoint

    # ---- what the commander asks ----
    @property
    def ready(self) -> bool:
        """Whether there is a checkpoint of everybody."""
        return all(player.version for player in self._owner.players)

    def file_of(self, name: str) -> tuple[str, int]:
        """That of an active player changes."""
        versions = {player.name: player.version for player in self._owner.players}
        return self._home.file_of(name), versions.get(name, 0)

    def state_dict(self) -> dict[str, Any]:
        """Nothing: the league is saved by itself."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing, likewise."""

    # ---- what the learner has to do ----
    def _rounds(self) -> float:
        tally, plan = self.run.tally, self.run.plan
        return (tally.total_episode if plan.episodes else tally.total_step) / plan.amount

    def step(self) -> None:
        """Let the learner write its checkpoint, or begin anew, when it is time to."""
        coordinator, passed = self.run.coordinator, self._rounds() - self._rounds_then
        due = passed >= self._owner.turn_rounds and self.run.tally.train_iter > self.published_iter
        if self.is_asked('publish', 'begin_anew'):
            return
        if self.reset is not None:
            coordinator.paused = True
            if not coordinator.learns:
                self.ask('begin_anew', self.reset, self.run.notes(), done=self._begun_anew)
        elif due or not self.version:
            first = None if self.version else self._home.first_of(self.name)
            self.ask('publish', self._player.checkpoint_path, first, done=self._published)

    def _published(self, task: Task) -> None:
        self.version, self.published_iter = self.version + 1, task.result['train_iter']
        self._rounds_then = self._rounds()
        taken, self.reset = self._home.learned(self.name, self.published_iter)
        if taken:
            self._owner.save()

    def _begun_anew(self, task: Task) -> None:
        self.reset, coordinator = None, self.run.coordinator
        coordinator.saved_iter, coordinator.paused = task.result['train_iter'], False
        coordinator.forget_older()
        self._rounds_then, self.published_iter = float('-inf'), -1  # the others shall meet it as it is now
        self._owner.save()

    # ---- state ----
    def saved(self) -> dict[str, Any]:
        """What a later process must know."""
        return {**HasState.state_dict(self), 'games': self.book.games}

    def put_back(self, state: dict[str, Any]) -> None:
        """Go on from what ``saved`` gave."""
        HasState.load_state_dict(self, state)
        self.book.games = state['games']
        self._rounds_then = float('-inf')  # its learner may be another one than that of the checkpoint


class ParallelLeague(RunLife):
    """
    Overview:
        The runs of all active players under one roof, with the league; a context manager that ends all roles.
    Arguments:
        - carrier, show_output: as of ``ParallelRun``
    """

    def __init__(self, launch: Launch, carrier: Carrier | None = None, show_output: bool = False) -> None:
        settings = launch.cfg.parallel
        if settings.learner_num != 1:
            text = f'got {settings.learner_num}, but each player of a league has one learner; set it to 1'
            raise ConfigError([f'parallel.learner_num: {text}'])
        game, state = check_league(launch), launch.newest_state()
        if state is not None and state.get('mode') != 'parallel':
            raise CheckpointError("this league was stopped in serial mode; resume it with '-m serial'")
        self.turn_rounds, self._saves = launch.cfg.commander.turn_rounds, 0
        self.players: list[LeaguePlayer] = []
        with contextlib.ExitStack() as stack:  # whatever fails below, what is there is closed
            super().__init__(launch, stack)
            if settings.save_s is not None:
                self._schedule = SaveSchedule(settings.save_s, self.cfg.learner.resume.max_cost)
            self.carrier = make_carrier(settings, show_output, carrier)
            stack.callback(self.carrier.close)
            self.folder = launch.open_folder(stack, {} if state is None else state['log_sizes'], KEPT_LOGS)
            stack.callback(self.carrier.close)
            self.home = LeagueHome(launch, self.folder, stack, resumed=state is not None)
            if state is not None:
                self.home.load_state_dict(state)
                self._saves, self.seconds_before = state['saves'], state['seconds']
                self.folder.count_resumes(True)
            for name in self.home.league.active_players_ids:
                self.players.append(self._player(launch, game, name, state, stack))
            launch.describe(self.folder, self.home.path, 'parallel')
            self.stack = stack.pop_all()

    def _player(self, launch: Launch, game: type[TwoSidedEnv], name: str, state: Any, stack: Any) -> LeaguePlayer:
        own = self.home.launch_of(name, SentOpponents(launch, game), resumed=state is not None)
        run = ParallelRun(own, self.carrier, shares=True)
        stack.push(run.__exit__)
        run.signals, run._start = self.signals, self._start
        player = LeaguePlayer(self, name, run, LeagueOpponents(launch, game, self.home, name, ready=True))
        if state is not None:
            player.put_back(state['players'][name])
        return player

    @property
    def solved(self) -> bool:
        """Whether the first player is what the league is for."""
        return self.players[0].run.coordinator.solved

    def show(self, progress: bool, total_log: bool = False) -> None:
        """Whether a person watches: the progress of the first player."""
        self.players[0].run.show(progress, total_log)

    def begin(self) -> None:
        """Start all roles at once."""
        for player in self.players:
            player.run.begin()

    # ---- the loop ----
    def going_on(self) -> bool:
        """Asked between two steps: whether there is another one. A player at its limits is still met."""
        for player in self.players:
            player.over = not player.run.going_on()
        return not self.solved and not all(player.over for player in self.players)

    def step(self, timeout_s: float = WAIT_S) -> None:
        """Wait for an answer of any role; each run takes its own, and gives out work."""
        self.carrier.wait([answer for player in self.players for answer in player.run.roster.calls], timeout_s)
        for player in self.players:
            if player.over:
                player.run.roster.answers(0.0)
            else:
                player.run.step(0.0)
        if self._schedule.due():
            self.save()

    # ---- state and end ----
    def save(self) -> None:
        """The league, with what is known of each player's run."""
        started = time.monotonic()
        self.home.clean(set().union(*(player.met for player in self.players)), KEPT)
        self._saves += 1
        state = {
            'version': STATE_VERSION,
            'mode': 'parallel',
            'seed': self.seed,
            'saves': self._saves,
            'seconds': self.seconds,
            'envs': None,
            'players': {player.name: player.saved() for player in self.players},
            'log_sizes': log_sizes(self.folder.log),
            **self.home.state_dict(),
        }
        write_state(self.home.path, self._saves, sum(player.book.games for player in self.players), state)
        self._schedule.took(time.monotonic() - started)

    def final_evaluation(self) -> None:
        """Evaluate what each learner ended with."""
        if not self.solved:
            for player in self.players:
                player.run.final_evaluation()

    def finish(self) -> RunResult:
        """The result is the first player's, in the folder of the league."""
        with self.signals.held():
            results = [player.run.finish() for player in self.players]
            self.save()
            result = replace(results[0], solved=self.solved)
            self.folder.ended(result)
        return result

    def interrupted(self) -> KeyboardInterrupt:
        """Save all that is stopped; the exception carries the first player's checkpoint."""
        with self.signals.held():
            self.save()
            first, *_ = [player.run.interrupted() for player in self.players]
        return first
