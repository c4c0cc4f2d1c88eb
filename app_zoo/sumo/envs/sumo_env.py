"""SumoEnv: traffic lights of one crossing or several, simulated by SUMO in this process."""

from __future__ import annotations

import importlib.util
import itertools
import os
import tempfile
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from app_zoo.sumo.envs.nets import CAR_M, NETS, Crossing, read_net, road_of, traffic, write_routes
from nervex.envs import BaseEnv, BaseEnvInfo, BaseEnvTimestep, EnvElementInfo
from nervex.utils import ConfigError
from nervex.utils.declare import setting, settings
from nervex.utils.drawing import Canvas
from nervex.utils.errors import ExtraMissingError, unknown_name

STANDING_M_S = 0.1  # slower than this, a car counts as standing (SUMO's own bound)
_running: weakref.ref | None = None  # the env whose simulation this process has


class SumoEnv(BaseEnv):
    """
    Overview:
        Every ``step_s`` seconds each crossing is given one of its green phases; where it is another one, ``yellow_s``
        seconds of yellow come first. Cars enter at random, by rates that change; the seed of an episode is that of its
        traffic. libsumo has one simulation a process, so envs need processes of their own
        (``env_manager_type: subprocess``). The last ``info`` has ``mean_wait``, the seconds that a car stood on
        average, and ``arrived``.
    Shapes:
        - observation: for each crossing the phase as a one-hot vector, how long it has lasted (minutes), and for each
          cell of each lane that leads to it, the nearest first: cars, standing cars (both by what the cell holds), and
          how much slower than allowed they drive on average
        - action: a phase; an array with one for each crossing where there are several
    """

    config = settings(
        net=setting('wj1', 'str', 'roads: wj1 (one crossing), wj3 (three in a row), or the path of a .net.xml'),
        per_hour=setting(400.0, 'number > 0', 'cars that enter on a road, on average'),
        uneven=setting(0.8, 'number in [0, 1]', 'rates differ by so much from the average'),
        change_s=setting(200, 'int >= 1', 'seconds until rates change'),
        episode_s=setting(1000, 'int >= 1', 'seconds of an episode'),
        step_s=setting(5, 'int >= 2', 'seconds between two decisions'),
        yellow_s=setting(3, 'int >= 1', 'seconds of yellow before another phase; fewer than step_s'),
        longest_s=setting(None, 'int >= 1 | None', 'seconds after which a phase makes way for the next one'),
        cells=setting(4, 'int >= 1', 'parts of a lane, equally long, that the observation tells apart'),
        rewards=dict(
            queue=setting(1.0, 'number >= 0', 'weight of the cars that stand, a lane'),
            wait=setting(0.0, 'number >= 0', 'weight of the minutes that the cars of a lane stand already, a lane'),
            delay=setting(0.0, 'number >= 0', 'weight of the cars by how much slower they are than allowed, a lane'),
            pressure=setting(0.0, 'number >= 0', 'weight of the difference of cars that come and that leave, a lane'),
        ),
    )
    one_a_process = True  # else it would be another env's simulation that goes on
    render_fps = 5

    def __init__(self, cfg: dict | None = None) -> None:
        super().__init__(cfg)
        c = self._cfg
        known = NETS.get(c.net, c.net)
        if not os.path.isfile(known):
            raise ConfigError([f'env.net: {unknown_name("net", c.net, NETS)}, and there is no such file'])
        if c.yellow_s >= c.step_s:
            raise ConfigError([f'env.yellow_s: {c.yellow_s} must be less than env.step_s, {c.step_s}'])
        self.net = read_net(known)
        self._crossings = self.net.crossings
        self._phases = [len(crossing.greens) for crossing in self._crossings]
        self._sumo: Any = None

    # ---- the env
    def reset(self, **kwargs: Any) -> np.ndarray:
        rng = self.episode_rng(kwargs.get('seed'))
        self._own_the_process()
        c = self._cfg
        with tempfile.TemporaryDirectory(prefix='nervex_sumo_') as folder:  # SUMO keeps open what it has begun to read
            routes = os.path.join(folder, 'cars.rou.xml')
            cars = traffic(self.net, rng, c.per_hour, c.uneven, c.change_s, c.episode_s)
            self._starts = np.array(write_routes(routes, cars))
            options = ['-n', self.net.path, '-r', routes, '--seed', str(rng.integers(2**31))]
            options += ['--no-step-log', '--no-warnings', '--time-to-teleport', '-1']
            if self._sumo.isLoaded():
                self._sumo.load(options)
            else:
                self._sumo.start(['sumo', *options])
        self._phase, self._lasted = [0] * len(self._crossings), [0] * len(self._crossings)
        self._second, self._stood, self._arrived, self._score = 0, 0.0, 0, 0.0
        for crossing in self._crossings:
            self._sumo.trafficlight.setRedYellowGreenState(crossing.name, crossing.greens[0])
        return self._seen()

    def step(self, action: Any) -> BaseEnvTimestep:
        chosen = [self._in_turn(k, phase) for k, phase in enumerate(self._checked(action))]
        c, lights = self._cfg, self._sumo.trafficlight
        changing = [k for k, phase in enumerate(chosen) if phase != self._phase[k]]
        for k in changing:
            lights.setRedYellowGreenState(self._crossings[k].name, _yellow(self._crossings[k].greens[self._phase[k]]))
        rewards = np.zeros(len(chosen))
        for second in range(c.step_s):
            if second == c.yellow_s:
                for k in changing:
                    lights.setRedYellowGreenState(self._crossings[k].name, self._crossings[k].greens[chosen[k]])
            rewards += self._simulate()
        for k, phase in enumerate(chosen):
            self._lasted[k] = c.step_s - c.yellow_s if k in changing else self._lasted[k] + c.step_s
            self._phase[k] = phase
        rewards /= c.step_s
        self._score += float(rewards.mean())
        done = self._second >= c.episode_s
        info = self._summary() if done else {}
        return BaseEnvTimestep(self._seen(), self._rewarded(rewards), done, info)

    def info(self) -> BaseEnvInfo:
        check_installed()
        size = sum(self._sizes())
        act: dict[str, Any] = {'min': 0, 'max': self._phases[0] - 1, 'dtype': np.int64, 'kind': 'discrete'}
        act['n'] = self._phases[0]
        if len(self._phases) > 1:
            n = tuple(self._phases)
            act |= {'kind': 'multi_discrete', 'n': n, 'max': tuple(size - 1 for size in n)}
        return BaseEnvInfo(
            1,
            EnvElementInfo((size,), {'min': 0.0, 'max': float('inf'), 'dtype': np.float32, 'kind': 'continuous'}),
            EnvElementInfo((act['n'],) if len(self._phases) == 1 else (len(self._phases),), act),
            EnvElementInfo((1,), {'min': -float('inf'), 'max': 0.0, 'dtype': np.float32, 'kind': 'continuous'}),
        )

    def _sizes(self) -> list[int]:
        """How many numbers are seen of each crossing."""
        cells = 3 * self._cfg.cells
        return [phases + 1 + cells * len(each.lanes) for phases, each in zip(self._phases, self._crossings)]

    def close(self) -> None:
        global _running
        if self._sumo is not None and _running is not None and _running() is self:
            self._sumo.close()
            _running = None
        self._sumo = None

    def __repr__(self) -> str:
        return f'SumoEnv(net={self._cfg.net!r})'

    # ---- for rules that choose phases without learning
    @property
    def phase(self) -> list[int]:
        """Of each crossing, what it has now."""
        return list(self._phase)

    def queues(self) -> list[np.ndarray]:
        """Of each crossing and phase: cars that stand where the phase would give green."""
        return [crossing.served @ self._halting(crossing.lanes) for crossing in self._crossings]

    def standing(self) -> dict[str, int]:
        """Of each road that leads to a crossing: cars that stand on it."""
        cars = dict.fromkeys((road for crossing in self._crossings for road in crossing.roads), 0)
        for crossing in self._crossings:
            for lane, count in zip(crossing.lanes, self._halting(crossing.lanes)):
                cars[road_of(lane)] += int(count)
        return cars

    # ---- the simulation
    def _own_the_process(self) -> None:
        global _running
        other = _running() if _running is not None else None
        if other is not None and other is not self:
            raise ConfigError(
                ['env.env_manager_type: SUMO has one simulation a process, and this process has one; take subprocess']
            )
        if self._sumo is None:
            self._sumo = importlib.import_module('libsumo')
            _running = weakref.ref(self)

    def _simulate(self) -> np.ndarray:
        """One second; the reward of each crossing."""
        sumo = self._sumo
        sumo.simulationStep()
        self._second += 1
        halting = [self._halting(crossing.lanes) for crossing in self._crossings]
        waiting = len(sumo.simulation.getPendingVehicles())  # there is no room for them yet
        self._stood += sum(each.sum() for each in halting) + waiting
        self._arrived += sumo.simulation.getArrivedNumber()
        rewards: dict[str, Callable[[Crossing, np.ndarray], float]] = {
            'queue': lambda crossing, halting: float(halting.mean()),
            'wait': lambda crossing, halting: float(self._of(crossing.lanes, 'getWaitingTime').mean()) / 60,
            'delay': lambda crossing, halting: self._delay(crossing),
            'pressure': lambda crossing, halting: self._pressure(crossing),
        }
        weighed = [(weight, rewards[name]) for name, weight in self._cfg.rewards.items() if weight]
        return -np.array([sum(weight * of(*each) for weight, of in weighed) for each in zip(self._crossings, halting)])

    def _of(self, lanes: list[str], question: str) -> np.ndarray:
        ask = getattr(self._sumo.lane, question)
        return np.array([ask(lane) for lane in lanes], np.float32)

    def _halting(self, lanes: list[str]) -> np.ndarray:
        return self._of(lanes, 'getLastStepHaltingNumber')

    def _slowness(self, lanes: list[str]) -> np.ndarray:
        return 1 - np.minimum(self._of(lanes, 'getLastStepMeanSpeed') / self._of(lanes, 'getMaxSpeed'), 1)

    def _delay(self, crossing: Crossing) -> float:
        cars = self._of(crossing.lanes, 'getLastStepVehicleNumber')
        return float((self._slowness(crossing.lanes) * cars).mean())

    def _pressure(self, crossing: Crossing) -> float:
        coming, going = (self._of(lanes, 'getLastStepVehicleNumber') for lanes in (crossing.lanes, crossing.leaving))
        return float(abs(coming.mean() - going.mean()))

    def _rewarded(self, rewards: np.ndarray) -> np.ndarray:
        """What the agent gets where these are the rewards of the crossings."""
        return np.array([rewards.mean()], np.float32)

    def _seen(self) -> Any:
        return np.concatenate(self._seen_by_each()).astype(np.float32)

    def _seen_by_each(self) -> list[np.ndarray]:
        """Of each crossing, its phase and what drives on its lanes."""
        parts: list[np.ndarray] = []
        for k, crossing in enumerate(self._crossings):
            phase = np.eye(self._phases[k], dtype=np.float32)[self._phase[k]]
            parts.append(np.concatenate([phase, [self._lasted[k] / 60], *map(self._cells, crossing.lanes)]))
        return parts

    def _cells(self, lane: str) -> np.ndarray:
        """Cars, standing cars and slowness of each cell of a lane."""
        n, length, vehicle = self._cfg.cells, self.net.length[lane], self._sumo.vehicle
        cars = self._sumo.lane.getLastStepVehicleIDs(lane)
        if not cars:
            return np.zeros(3 * n, np.float32)
        places = np.array([length - vehicle.getLanePosition(car) for car in cars])
        cell = np.clip((places * n / length).astype(int), 0, n - 1)
        speed = np.array([vehicle.getSpeed(car) for car in cars])
        slow = 1 - np.minimum(speed / self._sumo.lane.getMaxSpeed(lane), 1)
        count, standing, slowness = (np.bincount(cell, of, n) for of in (None, speed < STANDING_M_S, slow))
        room = length / n / CAR_M
        return np.concatenate([count / room, standing / room, slowness / np.maximum(count, 1)])

    def _summary(self) -> dict[str, Any]:
        cars = max(int((self._starts <= self._second - 1).sum()), 1)
        waits = {'mean_wait': float(self._stood / cars), 'arrived': self._arrived}
        return {'final_eval_reward': self._score, 'truncated': True, **waits}

    def _checked(self, action: Any) -> list[int]:
        chosen = np.asarray(action).reshape(-1)
        legal = chosen.shape == (len(self._phases),) and all(0 <= a < n for a, n in zip(chosen, self._phases))
        if not legal:
            raise ValueError(f'{self!r}: action {action!r}: must be a phase for each crossing, of {self._phases}')
        return [int(a) for a in chosen]

    def _in_turn(self, k: int, phase: int) -> int:
        """What was chosen for a crossing, unless its phase has lasted too long."""
        longest = self._cfg.longest_s
        due = longest is not None and phase == self._phase[k] and self._lasted[k] >= longest
        return (phase + 1) % self._phases[k] if due else phase

    # ---- the picture
    def render(self) -> np.ndarray:
        """Roads, cars by their speed from red to green, and a light before each lane."""
        points = np.concatenate(list(self.net.shape.values()))
        (left, low), (right, high) = points.min(0) - 10, points.max(0) + 10
        wide, tall = right - left, high - low
        scale = 900 / max(wide, tall)
        canvas = Canvas((int(wide * scale), int(tall * scale)), (left, right), (low, high), (120, 150, 110))
        for shape in [*self.net.shape.values(), *self.net.inside]:
            for start, end in itertools.pairwise(shape):
                canvas.segment(tuple(start), tuple(end), 3.4, (70, 70, 74))
        for k, crossing in enumerate(self._crossings):
            lit = self._sumo.trafficlight.getRedYellowGreenState(crossing.name)
            for lane, green in zip(crossing.lanes, crossing.served[self._phase[k]]):
                colour = (230, 200, 60) if 'y' in lit else (90, 200, 90) if green else (210, 70, 60)
                canvas.disc(tuple(self.net.shape[lane][-1]), 2.4, colour)
        for car in self._sumo.vehicle.getIDList():
            quick = min(self._sumo.vehicle.getSpeed(car) / 13.9, 1.0)
            angle = np.radians(self._sumo.vehicle.getAngle(car))
            front = np.array(self._sumo.vehicle.getPosition(car))
            back = front - 4.0 * np.array([np.sin(angle), np.cos(angle)])
            canvas.segment(tuple(front), tuple(back), 2.0, (int(255 - 60 * quick), int(120 + 130 * quick), 110))
        return canvas.pixels


def check_installed() -> None:
    """Refuse to go on without libsumo; it is found without being loaded into this process."""
    if importlib.util.find_spec('libsumo') is None:
        raise ExtraMissingError("the env sumo needs the package 'libsumo': pip install 'nervex[sumo]'")


def _yellow(state: str) -> str:
    return ''.join('y' if letter in 'Gg' else letter for letter in state)
