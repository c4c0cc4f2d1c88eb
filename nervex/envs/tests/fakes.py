"""
Envs for tests, with returns that are known beforehand.

CounterEnv: the observation says which env, which episode and which step; the reward is the step's number.
FaultyEnv: a CounterEnv that goes wrong, in many ways, at chosen steps.
"""

import os
import time
from typing import Any

import numpy as np

from nervex.envs import BaseEnv, BaseEnvInfo, BaseEnvTimestep, EnvElementInfo
from nervex.envs.hosting.one_env import ask_env
from nervex.envs.vector_engine import Answer


def box(shape: tuple[int, ...], dtype: Any = np.float32) -> EnvElementInfo:
    """An unbounded continuous element."""
    return EnvElementInfo(shape, {'min': -np.inf, 'max': np.inf, 'dtype': dtype, 'kind': 'continuous'})


def discrete(n: int) -> EnvElementInfo:
    """A discrete action."""
    return EnvElementInfo((n,), {'min': 0, 'max': n - 1, 'dtype': np.int64, 'kind': 'discrete', 'n': n})


class CounterEnv(BaseEnv):
    """
    Overview:
        Step t (1, 2, ...) of an episode gives the reward t; an episode of L steps returns L (L + 1) / 2.
        Observation: [tag, episode, step, last action] as float32; a reset gives [tag, episode, 0, -1].
    """

    config = dict(
        tag=0,  # first number of every observation: which env it is
        length=5,  # steps of an episode
        truncate=False,  # True: episodes end by a time limit
        act_dim=0,  # 0: two discrete actions; k: k continuous ones
        obs='vector',  # 'vector' | 'dict' | 'image' | 'object'
        step_info=False,  # True: every step has an info
        sleep_s=0.0,  # seconds that a step takes
    )

    def __init__(self, cfg: dict | None = None) -> None:
        super().__init__(cfg)
        self.episode, self.steps, self.closed, self.resets_seen = 0, 0, False, []
        self._seed, self._dynamic_seed = None, True
        self._rng = np.random.default_rng(0)

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        super().seed(seed, dynamic_seed)
        self._rng = np.random.default_rng(seed)

    def reset(self, **kwargs: Any) -> Any:
        if self._seed is not None and not self._dynamic_seed:
            self._rng = np.random.default_rng(self._seed)
        self.draw = float(self._rng.random())  # differs between episodes with a dynamic seed
        self.resets_seen.append(kwargs)
        self.episode += 1
        self.steps, self.total = 0, 0.0
        return self._obs(-1)

    def step(self, action: Any) -> BaseEnvTimestep:
        if self._cfg.sleep_s:
            time.sleep(self._cfg.sleep_s)
        self.steps += 1
        self.total += self.steps
        done = self.steps >= self._cfg.length
        info = {'step': self.steps} if self._cfg.step_info else {}
        if done:
            info.update(final_eval_reward=self.total, truncated=bool(self._cfg.truncate))
        return BaseEnvTimestep(
            self._obs(float(np.asarray(action).reshape(-1)[0])), np.array([self.steps], np.float32), done, info
        )

    def info(self) -> BaseEnvInfo:
        act = (
            discrete(2)
            if not self._cfg.act_dim
            else EnvElementInfo(
                (self._cfg.act_dim,), {'min': -1.0, 'max': 1.0, 'dtype': np.float32, 'kind': 'continuous'}
            )
        )
        kind = self._cfg.obs
        if kind == 'dict':
            obs = EnvElementInfo(
                {'vector': (4,), 'image': (2, 3)}, {'vector': {'dtype': np.float32}, 'image': {'dtype': np.uint8}}
            )
        elif kind == 'object':
            obs = EnvElementInfo(None, None)
        else:
            obs = box((4,)) if kind == 'vector' else box((8, 8), np.uint8)
        return BaseEnvInfo(1, obs, act, box((1,)))

    def close(self) -> None:
        self.closed = True

    @classmethod
    def create_vector_env(cls, cfgs: list[dict]) -> 'CounterEngine':
        return CounterEngine(cfgs)

    def get_tag(self, plus: int = 0) -> int:
        """A method to be called through a manager."""
        return self._cfg.tag + plus

    @property
    def tag(self) -> int:
        """An attribute to be read through a manager."""
        return self._cfg.tag

    def _obs(self, action: float) -> Any:
        vector = np.array([self._cfg.tag, self.episode, self.steps, action], np.float32)
        if self._cfg.obs == 'vector':
            return vector
        if self._cfg.obs == 'image':
            return np.full((8, 8), self.steps, np.uint8)
        if self._cfg.obs == 'object':
            return {'vector': vector, 'units': ['unit'] * self.steps}
        return {'vector': vector, 'image': np.full((2, 3), self.steps, np.uint8)}

    def __repr__(self) -> str:
        return f'{type(self).__name__}(tag={self._cfg.tag})'


class CounterEngine:
    """
    Overview:
        CounterEnvs as one vectorised env (see ``nervex.envs.vector_engine``); ``same_step``: reset by the ending step.
    """

    def __init__(self, cfgs: list[dict], same_step: bool = False) -> None:
        self.envs, self.num, self.same_step = [CounterEnv(c) for c in cfgs], len(cfgs), same_step
        self.info = self.envs[0].info
        self._ended = [False] * self.num

    def start(self, seeds: list) -> Any:
        for env, seed in zip(self.envs, seeds):
            if seed is not None:
                env.seed(seed)
        self._ended = [False] * self.num
        return self._stack([env.reset() for env in self.envs])

    def exchange(self, actions: np.ndarray) -> Answer:
        rows = []
        for k, env in enumerate(self.envs):
            if self._ended[k]:
                rows.append((env.reset(), 0.0, False, False, None))
                self._ended[k] = False
                continue
            obs, reward, done, info = env.step(actions[k])
            cut, first = done and info['truncated'], None
            self._ended[k] = done and not self.same_step
            if done and self.same_step:
                obs, first = env.reset(), obs
            rows.append((obs, float(reward[0]), done and not cut, cut, first))
        obs, reward, ended, cut, final = zip(*rows)
        final = list(final) if self.same_step else None
        return Answer(
            self._stack(obs),
            np.array(reward, np.float32),
            np.array(ended, bool),
            np.array(cut, bool),
            {},
            final,
        )

    def final_row(self, final_obs: list, k: int) -> Any:
        return final_obs[k]

    def ask(self, name: str, call: tuple | None) -> list:
        return [ask_env(env, name, call) for env in self.envs]

    def close(self) -> None:
        for env in self.envs:
            env.close()

    @staticmethod
    def _stack(rows: Any) -> Any:
        return {k: np.stack([r[k] for r in rows]) for k in rows[0]} if isinstance(rows[0], dict) else np.stack(rows)


class AsyncCounterEngine(CounterEngine):
    """The same, answering with whichever ``batch_size`` envs are first: by a generator of its own."""

    def __init__(self, cfgs: list[dict], batch_size: int) -> None:
        super().__init__(cfgs)
        self.batch_size = min(batch_size, len(cfgs))

    def start(self, seeds: list) -> Any:
        self._given: dict[int, Any] = {}
        self._rng = np.random.default_rng(len(seeds))
        return super().start(seeds)

    def send(self, actions: np.ndarray, ids: np.ndarray) -> None:
        assert not self._given.keys() & set(ids.tolist()), 'an env was given a second action before it had answered'
        self._given.update(zip(ids.tolist(), actions))

    def recv(self) -> tuple[np.ndarray, Answer]:
        assert len(self._given) >= self.batch_size, 'this would wait for ever'
        ids = self._rng.permutation(list(self._given))[: self.batch_size]
        everybody, ended = self.envs, self._ended
        self.envs, self._ended = [everybody[i] for i in ids], [ended[i] for i in ids]
        answer = self.exchange(np.array([self._given.pop(i) for i in ids.tolist()]))
        for i, flag in zip(ids, self._ended):
            ended[i] = flag
        self.envs, self._ended = everybody, ended
        return ids, answer


class TimeLimitEnv(CounterEnv):
    """A CounterEnv whose episodes end by a time limit only."""

    config = dict(truncate=True)


class FaultyEnv(CounterEnv):
    """
    Overview:
        Goes wrong at step ``at`` of the episodes in ``episodes`` (None: all of them), or in ``reset``. With
        ``once_file`` (a path) it happens once over all processes and renewed envs: the file marks that it has.
    """

    config = dict(
        fault=None,  # raise | sleep | shape | broadcast | dtype | nan | inf | huge | none |
        # nan_reward | inf_reward | huge_reward | none_reward | exit |
        # kill | huge_info | abnormal | interrupt | bad_done | close_pipes |
        # system_exit; with the prefix 'reset_': in reset
        at=2,  # the step of the episode
        episodes=None,  # list of episodes (1, 2, ...) in which it happens
        seconds=30.0,  # how long 'sleep' sleeps
        once_file=None,  # path of a marker file
        hang_file=None,  # path of a file that is there while 'sleep' sleeps, until the env is made again
        mb=4,  # size of 'huge_info'
    )

    def __init__(self, cfg: dict | None = None) -> None:
        super().__init__(cfg)
        if self._cfg.hang_file is not None and os.path.exists(self._cfg.hang_file):
            os.remove(self._cfg.hang_file)

    def reset(self, **kwargs: Any) -> Any:
        obs = super().reset(**kwargs)
        fault = self._cfg.fault or ''
        if fault.startswith('reset_') and self._due():
            answer = self._go_wrong(fault[len('reset_') :], BaseEnvTimestep(obs, np.zeros(1, np.float32), False, {}))
            return answer.obs if isinstance(answer, tuple) else answer
        return obs

    def step(self, action: Any) -> Any:
        timestep = super().step(action)
        fault = self._cfg.fault
        if fault and not fault.startswith('reset_') and self.steps == self._cfg.at and self._due():
            return self._go_wrong(fault, timestep)
        return timestep

    def _due(self) -> bool:
        if self._cfg.episodes is not None and self.episode not in self._cfg.episodes:
            return False
        if self._cfg.once_file is None:
            return True
        try:
            os.close(os.open(self._cfg.once_file, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def _go_wrong(self, fault: str, timestep: BaseEnvTimestep) -> Any:
        obs, reward, _, info = timestep
        if fault == 'raise':
            raise RuntimeError(f'deliberate error of env {self._cfg.tag}')
        if fault == 'interrupt':
            raise KeyboardInterrupt
        if fault == 'sleep':
            if self._cfg.hang_file is not None:
                open(self._cfg.hang_file, 'w').close()
            time.sleep(self._cfg.seconds)
        if fault == 'exit':
            os._exit(3)
        if fault == 'system_exit':
            raise SystemExit(4)
        if fault == 'close_pipes':
            os.closerange(3, 64)
        if fault == 'kill':
            os.kill(os.getpid(), 9)
        answers = {
            'shape': timestep._replace(obs=np.zeros(5, np.float32)),
            'broadcast': timestep._replace(obs=np.zeros(1, np.float32)),
            'dtype': timestep._replace(obs=np.array(['a', 'b', 'c', 'd'])),
            'nan': timestep._replace(obs=obs * np.float32('nan') if isinstance(obs, np.ndarray) else obs),
            'inf': timestep._replace(obs=np.where(np.arange(4) == 2, -np.inf, obs).astype(np.float32)),
            'huge': timestep._replace(obs=np.full(4, 1e300)),
            'inf_reward': timestep._replace(reward=np.float32('inf')),
            'huge_reward': timestep._replace(reward=1e300),
            'nan_reward': timestep._replace(reward=reward * np.float32('nan')),
            'none': None,
            'none_reward': timestep._replace(reward=None),
            'bad_done': timestep._replace(done=None),
            'abnormal': timestep._replace(info={**info, 'abnormal': True}),
            'huge_info': timestep._replace(info={**info, 'blob': b'x' * int(self._cfg.mb * 2**20)}),
        }
        return answers.get(fault, timestep)


class RaisingEnv(FaultyEnv):
    """Raises in the second step of every episode."""

    config = dict(fault='raise')


class FaultyTeam(BaseEnv):
    """
    Overview:
        Two agents who see three numbers and have two actions, in episodes of three steps, which give 1 each; ``wrong``
        says what does not fit.
    """

    config = dict(
        wrong=None,  # three | stuck | uneven | mask | actions | rewards | count
    )
    steps = 0

    def reset(self, **kwargs: Any) -> Any:
        self.steps = 0
        return self._seen()

    def step(self, action: Any) -> BaseEnvTimestep:
        self.steps += 1
        done = self.steps == 3
        info = {'final_eval_reward': 3.0, 'truncated': False} if done else {}
        return BaseEnvTimestep(self._seen(), np.ones(1, np.float32), done, info)

    def _seen(self) -> Any:
        wrong, mask = self._cfg.wrong, np.ones((2, 2), np.float32)
        each: Any = np.zeros((3 if wrong == 'three' else 2, 3), np.float32)
        if wrong == 'stuck' and self.steps == 2:
            mask[1] = 0
        if wrong == 'uneven':
            each = [np.zeros(3, np.float32), np.zeros(4, np.float32)]
        return {'agent_state': each, 'action_mask': mask}

    def info(self) -> BaseEnvInfo:
        wrong = self._cfg.wrong
        shapes = {'agent_state': (2, 3), 'action_mask': (2, 5 if wrong == 'mask' else 2)}
        obs = EnvElementInfo(shapes, dict.fromkeys(shapes, box((1,)).value))
        n = (2, 2, 2) if wrong == 'actions' else (2, 2)
        act = EnvElementInfo((len(n),), {'min': 0, 'max': 1, 'dtype': np.int64, 'kind': 'multi_discrete', 'n': n})
        return BaseEnvInfo(4 if wrong == 'count' else 2, obs, act, box((3,) if wrong == 'rewards' else (1,)))

    def __repr__(self) -> str:
        return f'FaultyTeam({self._cfg.wrong})'


class GlobalSeedEnv(CounterEnv):
    """Reseeds NumPy's global generator in every reset, which no env may do."""

    def reset(self, **kwargs: Any) -> Any:
        np.random.seed(7)
        return super().reset(**kwargs)
