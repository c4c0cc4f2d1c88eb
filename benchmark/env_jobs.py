"""The envs that env_bench steps, and the loop that counts their frames."""

import time
from collections.abc import Callable

import gymnasium
import numpy as np
from gymnasium import spaces

SECONDS = 0.5  # of stepping that count, in every cell
WARM_UP = 0.25  # seconds before
PONG = dict(frameskip=1, repeat_action_probability=0.0, full_action_space=False)


class SleepEnv(gymnasium.Env):
    """A step sleeps 1 ms, or an exponentially distributed time of that mean. Episodes do not end."""

    observation_space, action_space = spaces.Box(-1, 1, (4,), np.float32), spaces.Discrete(2)

    def __init__(self, uneven: bool = False) -> None:
        self._uneven, self._rng, self._obs = uneven, np.random.default_rng(), np.zeros(4, np.float32)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        return self._obs, {}

    def step(self, action: int) -> tuple:
        time.sleep(self._rng.exponential(1e-3) if self._uneven else 1e-3)
        return self._obs, 1.0, False, False, {}


class BigObsEnv(gymnasium.Env):
    """Does nothing but answer 84 x 84 x 4 pixels, 28 KB."""

    observation_space, action_space = spaces.Box(0, 255, (84, 84, 4), np.uint8), spaces.Discrete(2)

    def __init__(self) -> None:
        self._obs = np.random.default_rng(0).integers(0, 255, (84, 84, 4)).astype(np.uint8)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        return self._obs, {}

    def step(self, action: int) -> tuple:
        return self._obs, 1.0, False, False, {}


def make_pong() -> gymnasium.Env:
    """Pong with Gymnasium's own standard preprocessing: 84 x 84 grey, four frames, frame skip 4."""
    import ale_py

    gymnasium.register_envs(ale_py)
    env = gymnasium.wrappers.AtariPreprocessing(gymnasium.make('ALE/Pong-v5', **PONG), frame_skip=4)
    return gymnasium.wrappers.FrameStackObservation(env, 4)


MAKERS: dict[str, Callable[[], gymnasium.Env]] = {
    'cartpole': lambda: gymnasium.make('CartPole-v1'),
    'sleep1ms': SleepEnv,
    'expsleep1ms': lambda: SleepEnv(uneven=True),
    'pong': make_pong,
    'bigobs': BigObsEnv,
}
CASES = ['cartpole_n8', 'cartpole_n16', 'sleep1ms_n16', 'expsleep1ms_n16', 'pong_n8', 'bigobs_n8']
ACTIONS = {'pong': 6}


def parts(case: str) -> tuple[str, int, int]:
    """Name of the env, how many, and how many actions it has."""
    name, _, number = case.partition('_n')
    return name, int(number), ACTIONS.get(name, 2)


def job(setup: Callable) -> Callable:
    """
    Overview:
        A case for the harness. ``setup(name, make, num)`` answers (step, close); ``step(actions)`` takes (num, )
        actions drawn beforehand and answers how many frames it brought.
    """

    def case_of(case: str) -> Callable:
        def run(clock: object) -> int:
            name, num, n_actions = parts(case)
            step, close = setup(name, MAKERS[name], num)
            table = list(np.random.default_rng(0).integers(0, n_actions, (256, num)))
            try:
                _run(step, table, WARM_UP)
                with clock:
                    return _run(step, table, SECONDS)
            finally:
                close()

        return run

    return case_of


def _run(step: Callable, table: list, seconds: float) -> int:
    frames, k, end = 0, 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(8):
            frames += step(table[k & 255])
            k += 1
    return frames


def cases(setup: Callable, names: list[str] | None = None) -> dict[str, Callable]:
    """Case name -> function, for all envs or the named ones."""
    make = job(setup)
    return {case: make(case) for case in CASES if names is None or parts(case)[0] in names}
