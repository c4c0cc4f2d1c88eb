"""check_env: everything that is wrong with an env, found in one pass and said in words."""

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from nervex.envs.common import team_problems
from nervex.envs.env.base_env import BaseEnv
from nervex.envs.hosting.block import InvalidStepError, layout_from, layout_of, nothing_legal
from nervex.envs.hosting.one_env import flag, reward_of
from nervex.envs.spaces import MASK, random_action
from nervex.utils import tree


def check_env(env: Any, steps: int = 300, seed: int = 0) -> list[str]:
    """
    Overview:
        Play some episodes with random actions and look at everything that comes back.
    Arguments:
        - env (:obj:`Any`): a BaseEnv, a class of them, or a Gymnasium or old gym env (checked through GymEnv). It is
          played and reset, not closed
        - steps (:obj:`int`): how many steps to play
    Returns:
        - problems (:obj:`list[str]`): one sentence each; empty if the env is sound
    """
    check = _Check(steps, seed)
    with suppress(_Unplayable):
        check.run(env)
    return check.problems


class _Unplayable(Exception):
    """Nothing more can be found out; why is among the problems."""


class _Check:
    """One examination: collects problems, each only once."""

    def __init__(self, steps: int, seed: int) -> None:
        self.problems: list[str] = []
        self._steps, self._seed, self._rng = steps, seed, np.random.default_rng(seed)
        self._layout: Any = None
        self._mask: Any = None  # the action_mask of the last observation, where it has one

    def run(self, env: Any) -> None:
        self._env = self._made(env)
        self._check_info()
        with suppress(_Unplayable), self._watch_global_generators():
            with self._trying('seed()'):
                self._env.seed(self._seed)
            self._reset()
            self._play()
            self._check_seeds()
        for note in ('close() must work', 'close() must work a second time'):
            with suppress(_Unplayable), self._trying('close()', f'; {note}'):
                self._env.close()

    def say(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)

    @contextmanager
    def _trying(self, what: str, note: str = '') -> Iterator[None]:
        """Something of the env's own; what it raises is a problem, and the end of this part."""
        try:
            yield
        except Exception as error:
            self.say(f'{what} raises {type(error).__name__}: {error}{note}')
            raise _Unplayable from error

    # ------------------------------------------------------------------ the parts
    def _made(self, env: Any) -> Any:
        if isinstance(env, type):
            with self._trying(f'{env.__name__}({{}})', ': settings need defaults (class attribute config)'):
                env = env({})
        if not callable(getattr(env, 'info', None)):
            if not (callable(getattr(env, 'reset', None)) and callable(getattr(env, 'step', None))):
                self.say(f'{env!r} is no env: it needs reset(), step(), seed(), close() and info()')
                raise _Unplayable
            from nervex.envs.gym_env import GymEnv

            with self._trying('GymEnv, which adapts it,'):
                return GymEnv(env)
        lacking = [name for name in ('reset', 'step', 'seed', 'close') if not callable(getattr(env, name, None))]
        for name in lacking:
            self.say(f'the env has no method {name}()')
        if not isinstance(env, BaseEnv):
            self.say('the env does not inherit from nervex.envs.BaseEnv: it lacks create_actor_env_cfg and others')
        if lacking:
            raise _Unplayable
        return env

    def _check_info(self) -> None:
        with self._trying('info()', '; it must work before the first reset()'):
            info = self._info = self._env.info()
        for name in ('obs_space', 'act_space', 'rew_space'):
            if not hasattr(info, name):
                self.say(f'info() must return a BaseEnvInfo; {name} is missing in {type(info).__name__}')
                raise _Unplayable
            space = getattr(info, name)
            shape, value = getattr(space, 'shape', None), getattr(space, 'value', None)
            if not isinstance(shape, (tuple, dict)):
                self.say(f'info().{name}.shape must be a tuple (or a dict of tuples), got {shape!r}')
            if not isinstance(value, dict):
                self.say(f"info().{name}.value must be a dict with 'min', 'max', 'dtype' and 'kind', got {value!r}")
        for text in team_problems(info):
            self.say(f'info(): {text}')
        self._action()

    def _action(self) -> Any:
        """A random action, as a manager would give it."""
        space = self._info.act_space
        value = space.value if isinstance(space.value, dict) else {}
        n, kind = value.get('n'), value.get('kind')
        if isinstance(self._mask, np.ndarray) and self._mask.ndim and (text := nothing_legal(self._mask)):
            self.say(text)
        if kind == 'discrete' and n and space.shape != (n,):
            self.say(f'info().act_space: a discrete space of n={n} actions has the shape ({n}, ), got {space.shape}')
        try:
            return random_action(space, self._rng, self._mask)
        except ValueError as error:
            self.say(f'info().{error}')
            raise _Unplayable from None

    def _reset(self) -> None:
        with self._trying('reset()'):
            obs = self._env.reset()
        if isinstance(obs, tuple) and len(obs) == 2 and isinstance(obs[1], dict):
            self.say('reset() returns (obs, info); a BaseEnv returns the observation alone')
            obs = obs[0]
        if obs is None:
            self.say('reset() returns None; it must return the first observation')
            raise _Unplayable
        self._check_obs('reset()', obs)

    def _play(self) -> None:
        ended, kept = False, None
        for _ in range(self._steps):
            with self._trying('step()'):
                answer = self._env.step(self._action())
            if not isinstance(answer, tuple) or len(answer) != 4:
                self.say(f'step() must return BaseEnvTimestep(obs, reward, done, info), got {_kind(answer)}')
                raise _Unplayable
            obs, reward, done, info = answer
            self._check_obs('step()', obs)
            if kept is not None and not _same(*kept):
                self.say('an observation that step() returned is changed by the next step(): return a copy')
            plain = all(isinstance(leaf, np.ndarray) and leaf.dtype != object for leaf in tree.leaves(obs))
            kept = (obs, tree.map(np.copy, obs)) if plain else None
            self._check_reward(reward)
            if not isinstance(info, dict):
                self.say(f'step(): info must be a dict, got {_kind(info)}')
                info = {}
            if self._is_end(done):
                self._check_end(info)
                self._reset()
                ended, kept = True, None
        if not ended:
            self.say(f'no episode ended within {self._steps} steps; give it a time limit (truncated), or check longer')

    def _check_reward(self, reward: Any) -> None:
        size = int(np.prod(getattr(self._info.rew_space, 'shape', None) or (1,)))
        try:
            value = reward_of(reward, size)
        except InvalidStepError as error:
            self.say(f'step(): {error}')
            return
        if not np.isfinite(value).all():
            self.say(f'step(): the reward is {value}')
        if not (isinstance(reward, np.ndarray) and reward.dtype == np.float32 and reward.shape == (size,)):
            self.say(f'step(): the reward must be a float32 array of shape ({size}, ), got {_kind(reward)}')

    def _is_end(self, done: Any) -> bool:
        try:
            ended = flag(done, 'done')
        except InvalidStepError as error:
            self.say(f'step(): {error}')
            return False
        if type(done) is not bool:
            self.say(f'step(): done must be a Python bool, got {_kind(done)}')
        return ended

    def _check_end(self, info: dict) -> None:
        score = info.get('final_eval_reward')
        if not isinstance(score, (int, float)) or isinstance(score, bool):
            self.say(
                "the last info of an episode must have 'final_eval_reward', the episode's return as a Python "
                f'number; got {score!r}'
            )
        if 'TimeLimit.truncated' in info and 'truncated' not in info:
            self.say("the last info has 'TimeLimit.truncated'; nervex reads 'truncated' (True: only a time limit)")
        elif not isinstance(info.get('truncated', False), (bool, np.bool_)):
            self.say(f"info['truncated'] must be a bool, got {info['truncated']!r}")

    def _check_obs(self, where: str, obs: Any) -> None:
        self._mask = obs.get(MASK) if isinstance(obs, dict) else None
        try:
            layout = layout_of(obs, getattr(self._info.obs_space, 'value', None))
        except InvalidStepError as error:
            self.say(f'{where}: {error}')
            return
        declared = getattr(self._info.obs_space, 'shape', None)
        shape = tree.map(lambda leaf: leaf.shape, layout)
        if declared is not None and _tuples(declared) != shape:
            try:
                layout_from(self._info, obs)
                self.say(f'{where} gives an observation of shape {shape}, but info() says {declared}')
            except InvalidStepError as error:
                self.say(f'{where}: {error}')
        if self._layout is None:
            self._layout = layout
        elif layout != self._layout:
            self.say(f'observations differ in form: {self._layout}, then {layout} in {where}')
        for leaf in tree.leaves(obs):
            if isinstance(leaf, np.ndarray) and leaf.dtype == np.float64:
                self.say(f'{where} gives float64; models take float32')
            if isinstance(leaf, np.ndarray) and leaf.dtype.kind == 'f' and not np.isfinite(leaf).all():
                self.say(f'{where} gives an observation with NaN or infinity')

    def _check_seeds(self) -> None:
        """The same seed gives the same episode; the dynamic flag is understood."""
        try:
            self._env.seed(self._seed, dynamic_seed=False)
        except TypeError:
            self.say('seed() must take (seed, dynamic_seed=True): fixed seeds make evaluations comparable')
            return
        with self._trying('an episode after seed()'):
            first = [self._rollout() for _ in range(2)]
            self._env.seed(self._seed, dynamic_seed=False)
            again = self._rollout()
        if not _same(first[0], again):
            self.say('the same seed gives different episodes: draw from a generator of the env, seeded in seed()')
        elif not _same(first[0], first[1]):
            self.say('with dynamic_seed=False every episode must begin alike; this one goes on with its generator')

    def _rollout(self) -> list:
        self._rng = np.random.default_rng(self._seed)
        obs = self._env.reset()
        seen = [tree.map(np.copy, obs)]
        for _ in range(20):
            self._mask = obs.get(MASK) if isinstance(obs, dict) else None
            obs, _, done, _ = self._env.step(self._action())
            seen.append(tree.map(np.copy, obs))
            if done:
                break
        return seen

    @contextmanager
    def _watch_global_generators(self) -> Iterator[None]:
        """Did the env use or reseed a generator that belongs to everybody? What it did is undone."""
        before = _global_states()
        try:
            yield
        finally:
            for (name, state, restore), (_, after, _) in zip(before, _global_states()):
                if repr(state) != repr(after):
                    self.say(
                        f'the env uses or seeds the global generator of {name}: that makes every other part of a run '
                        f'depend on it; keep one of your own (np.random.default_rng(seed))'
                    )
                    restore(state)


def _global_states() -> list[tuple[str, Any, Callable]]:
    kind, keys, *rest = np.random.get_state()
    states: list[tuple[str, Any, Callable]] = [
        ('NumPy', (kind, np.asarray(keys).tolist(), *rest), np.random.set_state),
        ('random', random.getstate(), random.setstate),
    ]
    torch = sys.modules.get('torch')
    if torch is not None:
        states.append(
            ('torch', torch.get_rng_state().tolist(), lambda s: torch.set_rng_state(torch.tensor(s, dtype=torch.uint8)))
        )
    return states


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b))
    if isinstance(a, dict):
        return all(_same(a[k], b[k]) for k in a)
    a, b = np.asarray(a), np.asarray(b)
    return np.array_equal(a, b, equal_nan=a.dtype.kind == 'f')


def _tuples(shape: Any) -> Any:
    return {k: _tuples(v) for k, v in shape.items()} if isinstance(shape, dict) else tuple(shape)


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f'an array of {value.dtype} with shape {value.shape}'
    return f'{type(value).__name__} {value!r}'[:80]
