"""A league in serial mode: one learner for each active player, in turn, in one process."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nervex.envs import TwoSidedEnv
from nervex.run.build import start_serial
from nervex.run.folder import RunFolder
from nervex.run.launch import Launch
from nervex.run.league_home import LeagueHome, check_league
from nervex.run.life import RunLife
from nervex.run.opponents import LearnersOpponents, snapshot_of
from nervex.run.result import RunResult
from nervex.run.serial_run import SerialRun
from nervex.run.state import KEPT, STATE_VERSION, complete_state, log_sizes, write_state
from nervex.utils import CheckpointError
from nervex.utils.file_helper import save_file
from nervex.worker.learner.checkpoints import load_checkpoint_file

logger = logging.getLogger(__name__)
_PATIENCE_S = 60.0  # of a signal, for the end of a turn


class LeagueOpponents(LearnersOpponents):
    """
    Overview:
        Whom an active player of a league meets: each game that begins asks the league. Other active players, and the
        player itself, act as they were at the end of their last turn. Games begun before any file is there are against
        the player ``random``.
    """

    def __init__(
        self, launch: Launch, game: type[TwoSidedEnv], home: LeagueHome, player_id: str, ready: bool = False
    ) -> None:
        super().__init__(launch, game)
        self._home, self._league, self._player = home, home.league, home.league.player(player_id)
        self.ready = ready  # the players' files are there
        self.games = 0  # that were recorded

    def choose(self, count: int) -> Sequence[str]:
        if not self.ready:
            return [self.name] * count
        return [self._player.get_job()['opponent'].player_id for _ in range(count)]

    def ended(self, names: Sequence[str], results: Sequence[str]) -> None:
        for name, result in zip(names, results):
            self.games += self._league.record({'player_id': (self._player.player_id, name), 'result': result})

    def file_of(self, name: str) -> str | None:
        return None if name == self.name else self._home.file_of(name)

    def forget(self, name: str) -> None:
        """A player has learned: load it anew."""
        self._loaded.pop(name, None)

    def step(self, learner: Any, env_step: int) -> None:
        """The league takes snapshots, between turns."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing: the league is saved as a whole."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Networks are loaded again."""
        self._loaded.clear()


class LeagueRun(RunLife):
    """
    Overview:
        What ``Launch.carry_out`` runs where the commander has many learners. Each player has a whole ``SerialRun`` in
        ``players/<id>``; the league's checkpoints and the complete state of all are in ``league``.
    """

    def __init__(
        self, launch: Launch, game: type[TwoSidedEnv], folder: RunFolder, stack: contextlib.ExitStack, state: Any
    ) -> None:
        super().__init__(launch, stack, _PATIENCE_S)
        self.folder = folder
        self.home = LeagueHome(launch, folder, stack, resumed=state is not None)
        self.league, self.ckpt_path = self.home.league, self.home.path
        self._rounds, self._turns, self.solved = self.cfg.commander.turn_rounds, 0, False
        self.runs: dict[str, SerialRun] = {}
        for name in self.league.active_players_ids:
            one = self.home.launch_of(name, LeagueOpponents(launch, game, self.home, name), resumed=state is not None)
            run = start_serial(one, state=None if state is None else state['players'][name])
            stack.push(run.stack)
            run.signals = self.signals
            self.runs[name] = run
        if state is not None:
            self.home.load_state_dict(state)
            self._turns, self.seconds_before = state['turns'], state['seconds']
            folder.count_resumes(True)
        for name, run in self.runs.items():
            self._publish(name)
            run.commander.selfplay.ready = True

    def show(self, progress: bool, total_log: bool = False) -> None:
        """Whether a person watches: a progress line of the first player, and the log lines of all workers."""
        next(iter(self.runs.values())).show(progress, total_log)

    def begin(self) -> None:
        """Hooks before the run, which may load checkpoints; players begin anew from the first where none is given."""
        for name, run in self.runs.items():
            run.begin()
            start = None if self._turns else self.home.start_of(name)
            if start is not None:
                run.learner.policy.load_state_dict(load_checkpoint_file(start))
            first = self.home.first_of(name)
            if first is not None:
                save_file(first, run.learner.state_dict())
            self._publish(name)

    # ---- turns
    def going_on(self) -> bool:
        """Asked between two turns: whether there is another one. Saves as a serial run does."""
        self.save_in_time()
        return not self.solved and any(not run.commander.out_of_budget() for run in self.runs.values())

    def turn(self) -> None:
        """Some rounds of the next player that has not reached its limit; then the league may take a snapshot of it."""
        names = list(self.runs)
        name = names[self._turns % len(names)]
        run, self._turns = self.runs[name], self._turns + 1
        before = run.learner.train_iter
        for _ in range(self._rounds):
            if run.commander.out_of_budget():
                break
            run.commander.step()
            if run.evaluator.due(run.learner.train_iter) and run.evaluate() and name == names[0]:
                self.solved = True
                return
            run.collect()
            for batch in run.batches():
                run.train(batch)
        if run.learner.train_iter == before:
            return
        self._publish(name)
        taken, reset = self.home.learned(name, run.learner.train_iter)
        if reset is not None:
            run.learner.policy.load_state_dict(load_checkpoint_file(reset))
            self._publish(name)
        if taken and not self._schedule.enabled:
            self._clean(0)

    def _clean(self, states: int) -> None:
        met = set().union(*(run.commander.selfplay.met for run in self.runs.values()))
        self.home.clean(met, states)

    def _publish(self, name: str) -> None:
        """Let the others meet a player as it is now."""
        save_file(self.league.player(name).checkpoint_path, snapshot_of(self.runs[name].learner))
        for run in self.runs.values():
            run.commander.selfplay.forget(name)

    # ---- state and end
    def save(self) -> None:
        """Everything that the rest of the run depends on, in one file."""
        self._clean(KEPT)
        players = {name: complete_state(run) for name, run in self.runs.items()}
        own = {'version': STATE_VERSION, 'seed': self.seed, 'turns': self._turns, 'seconds': self.seconds, 'envs': None}
        state = {**own, **self.home.state_dict(), 'players': players, 'log_sizes': log_sizes(self.folder.log)}
        updates = sum(run.learner.train_iter for run in self.runs.values())
        write_state(self.ckpt_path, updates, sum(run.actor.total_step for run in self.runs.values()), state)

    def finish(self) -> RunResult:
        """Hooks after the run; the result is the first player's, in the folder of the league."""
        with self.signals.held():
            if self._schedule.enabled:
                self.save()
            for run in self.runs.values():
                if not run.evaluator.knows(run.learner.train_iter):
                    run.evaluate()
            results = [run.finish() for run in self.runs.values()]
            result = replace(results[0], solved=self.solved)
            self.folder.ended(result)
        return result

    def interrupted(self) -> KeyboardInterrupt:
        """The exception carries the first player's newest checkpoint."""
        return KeyboardInterrupt(next(iter(self.runs.values())).learner.last_checkpoint)


def start_league(launch: Launch) -> LeagueRun:
    """Build the run, and put it where the earlier one was that it goes on from."""
    game, state = check_league(launch), launch.newest_state()
    if state is not None and state.get('mode') == 'parallel':
        raise CheckpointError("this league was stopped in parallel mode; resume it with '-m parallel'")
    with contextlib.ExitStack() as stack:
        folder = launch.open_folder(stack, {} if state is None else state['log_sizes'])
        run = LeagueRun(launch, game, folder, stack, state)
        launch.describe(folder, run.ckpt_path)
        run.stack = stack.pop_all()
    return run


def league_loop(run: LeagueRun) -> None:
    """Turns until the first player is solved or all are at their limits."""
    while run.going_on():
        run.turn()
