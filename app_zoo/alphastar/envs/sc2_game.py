"""StarCraft II by pysc2, each game in a process of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from multiprocessing import Pipe
from typing import Any

import numpy as np

from app_zoo.alphastar.envs import sc2_process
from app_zoo.alphastar.envs.features import LAYERS, PLAYER, UNIT, scalars, view_of
from app_zoo.alphastar.envs.orders import PLACES
from app_zoo.alphastar.envs.star_game import StarGame
from nervex.utils import ENV_REGISTRY
from nervex.utils.declare import setting, settings
from nervex.utils.errors import ConfigError, EnvError
from nervex.utils.import_helper import require

RACES = ('terran', 'zerg', 'protoss', 'random')  # numbered from 1
_PROCESS = sc2_process.__name__
_FAREWELL_S = 20.0  # for a process to close its game


@ENV_REGISTRY.register('alphastar')
class SC2Game(StarGame):
    """
    Overview:
        StarCraft II between two sides, by pysc2's raw interface (extra ``alphastar``), or pysc2's mock of it, which
        shows the same scene for ten observations and ends in a draw. A side that has ordered moves again when its
        delay is over, so that the sides are not always to move at once. 1 for who wins, -1 for who loses.
    """

    config = settings(
        mock=setting(False, 'bool', "pysc2's mock instead of the game"),
        map_name=setting('Simple64', 'str', 'a map that pysc2 and the game have'),
        races=setting(['protoss', 'protoss'], 'list of str', f'of both sides, each one of {", ".join(RACES)}'),
        game_loops=setting(20_000, 'int >= 1', 'of a game; 22.4 are a second. What is not decided then is a draw'),
        answer_timeout_s=setting(300.0, 'number > 0', 'seconds that a process of a game may take for an answer'),
    )
    at_once = 4  # each is a process, and may be a game of gigabytes

    def __init__(self, cfg: dict | None = None, num: int = 1) -> None:
        super().__init__(cfg, num)
        require('pysc2', 'nervex[alphastar]', "env_type 'alphastar'")
        races = list(self._cfg.races)
        if len(races) != 2 or not set(races) <= set(RACES):
            raise ConfigError([f'env.races: got {races}, must be two of {", ".join(RACES)}'])
        self.limit = self._cfg.game_loops + 1
        self._races = np.array([RACES.index(race) + 1 for race in races])
        self._games: dict[int, GameProcess] = {}  # by row; they make that no state of this env can be saved
        shape, cells, units = (num, 2), self.sizes.cells, self.sizes.units
        self._due = np.zeros(shape, np.int64)  # game loops until a side is to move
        self._last = np.zeros((*shape, 2), np.int16)
        self._player, self._loop = np.zeros((*shape, len(PLAYER)), np.int64), np.zeros(num, np.int64)
        self._units, self._count = np.zeros((*shape, units, len(UNIT)), np.int16), np.zeros(shape, np.int64)
        self._map = np.zeros((*shape, len(LAYERS), cells, cells), np.uint8)

    def begin(self, which: np.ndarray, generators: list[np.random.Generator]) -> None:
        for row in which.tolist():
            seed = int(generators[row].integers(2**31))
            if row not in self._games:
                self._games[row] = GameProcess(self._cfg.answer_timeout_s)
            asked = {key: self._cfg[key] for key in ('mock', 'map_name', 'game_loops')}
            sizes = {'cells': self.sizes.cells, 'units': self.sizes.units, 'races': list(self._cfg.races)}
            self._games[row].ask('begin', {**asked, **sizes}, seed)
        self._due[which], self._last[which] = 0, 0
        self._answered(which)

    def move(self, rows: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moves = self._due[rows] == 0
        chosen = actions[..., [PLACES['action_type'], PLACES['delay']]]
        self._last[rows] = np.where(moves[..., None], chosen, self._last[rows])
        due = np.where(moves, chosen[..., 1] + 1, self._due[rows])
        loops = due.min(1)
        self._due[rows] = due - loops[:, None]
        for row, *call in zip(rows.tolist(), actions, moves, loops.tolist()):
            self._games[row].ask('step', *call)
        return self._answered(rows)

    def _answered(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the games of these rows have answered: what is seen is noted; rewards, and which are over."""
        try:
            answers = [self._games[row].answer() for row in rows.tolist()]
        except EnvError:
            self.close()  # what the other games answer belongs to no call any more
            raise
        for row, (views, _, _) in zip(rows.tolist(), answers):
            self._loop[row] = views[0]['game_loop']
            for side, view in enumerate(views):
                count = len(view['units'])
                self._player[row, side], self._map[row, side] = view['player'], view['map']
                self._units[row, side], self._count[row, side] = 0, count
                self._units[row, side, :count] = view['units']
        _, rewards, over = zip(*answers)
        return np.array(rewards, np.float32), np.array(over)

    def turns(self) -> np.ndarray:
        return self._due == 0

    def view(self, rows: np.ndarray, sides: np.ndarray) -> dict[str, np.ndarray]:
        home, away = self._races[sides], self._races[1 - sides]
        scalar = scalars(self._player[rows, sides], self._loop[rows], home, away)
        return view_of(scalar, *(part[rows, sides] for part in (self._map, self._units, self._count, self._last)))

    def close(self) -> None:
        """Close the games; may be called twice."""
        while self._games:
            self._games.popitem()[1].close()


class GameProcess:
    """
    Overview:
        The process of one game; calls are asked, and answered later.
    Arguments:
        - timeout_s (:obj:`float`): how long an answer may take
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._pipe, end = Pipe()
        command = [sys.executable, '-c', f'import {_PROCESS}; {_PROCESS}.serve()', str(end.fileno())]
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        env = {**os.environ, 'PYTHONPATH': paths, **sc2_process.ENVIRONMENT}
        # A session of its own: Ctrl-C is the run's, which may still need the game to end in order.
        self._process = subprocess.Popen(command, pass_fds=[end.fileno()], env=env, start_new_session=True)
        end.close()

    def ask(self, method: str, *arguments: Any) -> None:
        """Begin a call; if the process has ended, the answer tells."""
        with contextlib.suppress(OSError):
            self._pipe.send((method, arguments))

    def answer(self) -> Any:
        """What the call that was begun has given."""
        try:
            if not self._pipe.poll(self._timeout_s):
                raise EnvError(f'a game of StarCraft II has not answered for {self._timeout_s:g} s')
            found = self._pipe.recv()
        except (EOFError, OSError) as error:
            code = self._process.wait(_FAREWELL_S)
            raise EnvError(f'the process of a game of StarCraft II ended with exit code {code}') from error
        if isinstance(found, str):
            raise EnvError(f'a game of StarCraft II failed; its own traceback:\n{found}')
        return found

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        try:
            self._process.wait(_FAREWELL_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
