"""PettingZooGame: any PettingZoo env of two agents as a game of two sides."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from nervex.envs.pettingzoo_env import make_pettingzoo
from nervex.envs.spaces import MASK, ObsCodec, space_kind
from nervex.envs.two_sided import TwoSidedEnv
from nervex.utils.declare import setting, settings


class PettingZooGame(TwoSidedEnv):
    """
    Overview:
        ``env_type='pettingzoo_game', env_id='pettingzoo.classic.connect_four_v3'``: agents that act in turn (AEC) or at
        once (parallel), each by a choice among n actions. The envs are stepped one after the other. An exact resume
        plays their unfinished games again from their seeds.
    """

    config = settings(
        env_id=setting(None, 'str | None', "module path, e.g. 'pettingzoo.classic.connect_four_v3'"),
        env_fn=setting(None, 'callable | None', 'instead of an id: makes the env, without arguments'),
        make_kwargs=setting({}, 'dict', 'passed on to the env'),
        max_steps=setting(10_000, 'int >= 1', 'steps after which a game is cut'),
    )
    state_constants = ('_envs', '_sees', '_agents', 'in_turn', 'seen_shape', 'action_num', '_obs', '_turns')

    def __init__(self, cfg: dict | None = None, num: int = 1) -> None:
        super().__init__(cfg, num)
        self.limit = self._cfg.max_steps
        make = self._cfg.env_fn or partial(make_pettingzoo, self._cfg, ('env', 'parallel_env'))
        self._envs = [make() for _ in range(num)]
        first = self._envs[0]
        self.in_turn = hasattr(first, 'agent_iter')
        self._agents = list(first.possible_agents)
        spaces = [first.action_space(a) for a in self._agents]
        if len(spaces) != 2 or any(space_kind(s) != 'Discrete' for s in spaces) or spaces[0].n != spaces[1].n:
            found = ', '.join(f'{a}: {s}' for a, s in zip(self._agents, spaces))
            raise TypeError(f'{self!r}: a game of two sides has two agents with the same Discrete actions, not {found}')
        self.action_num = int(spaces[0].n)
        self._sees = [ObsCodec(first.observation_space(a), flatten=True) for a in self._agents]
        shape: Any = self._sees[0].info.shape
        self.seen_shape = tuple(shape['observation'] if isinstance(shape, dict) else shape)
        self._seeds, self._played = [0] * num, [[] for _ in range(num)]  # type: list[int], list[list[list[int]]]
        self._turns = np.ones((num, 2), bool)
        self._obs: list[Any] = [None] * num  # of parallel envs: the newest observations

    def begin(self, which: np.ndarray, generators: list[np.random.Generator]) -> None:
        for row in which.tolist():
            self._begin(row, int(generators[row].integers(2**31)))

    def _begin(self, row: int, seed: int) -> None:
        self._seeds[row], self._played[row] = seed, []
        answer = self._envs[row].reset(seed=seed)
        if not self.in_turn:
            self._obs[row] = answer[0] if isinstance(answer, tuple) else answer
        self._note(row)

    def move(self, rows: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moved = [self._step(row, pair) for row, pair in zip(rows.tolist(), actions.tolist())]
        rewards, over = zip(*moved)
        return np.array(rewards, np.float32), np.array(over)

    def _step(self, row: int, pair: list[int]) -> tuple[list[float], bool]:
        env = self._envs[row]
        self._check(row, pair)
        self._played[row].append(pair)
        if self.in_turn:
            env.step(pair[self._agents.index(env.agent_selection)])
            rewards: Any = env.rewards
            over = all(env.terminations.get(a) or env.truncations.get(a) for a in env.agents)
            while not over and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
                env.step(None)
        else:
            self._obs[row], rewards, *_ = env.step(dict(zip(self._agents, pair)))
            over = not env.agents
        self._note(row)
        return [float(rewards.get(a, 0.0)) for a in self._agents], over

    def _check(self, row: int, pair: list[int]) -> None:
        for side in self._turns[row].nonzero()[0].tolist():
            legal = self._seen(row, side)[1].nonzero()[0].tolist()
            if pair[side] not in legal:
                text = f'{self!r}: game {row}: action {pair[side]} of {self._agents[side]} is not legal; legal are'
                raise ValueError(f'{text} {legal}')

    def _note(self, row: int) -> None:
        if self.in_turn:
            self._turns[row] = [a == self._envs[row].agent_selection for a in self._agents]

    def turns(self) -> np.ndarray:
        return self._turns

    def view(self, rows: np.ndarray, sides: np.ndarray) -> dict[str, np.ndarray]:
        seen = [self._seen(row, side) for row, side in zip(rows.tolist(), sides.tolist())]
        return {'observation': np.stack([s[0] for s in seen]), MASK: np.stack([s[1] for s in seen])}

    def _seen(self, row: int, side: int) -> tuple[np.ndarray, np.ndarray]:
        env, agent = self._envs[row], self._agents[side]
        raw = env.observe(agent) if self.in_turn else self._obs[row].get(agent)
        seen: Any = self._sees[side](raw)
        legal = raw.get(MASK) if isinstance(raw, dict) else (getattr(env, 'infos', {}).get(agent) or {}).get(MASK)
        mask = np.ones(self.action_num, np.float32) if legal is None else np.asarray(legal, np.float32)
        if not (self._turns[row, side] and mask.any()):
            mask = np.ones(self.action_num, np.float32)  # nothing is forbidden to who is not to move
        return np.asarray(seen['observation'] if isinstance(seen, dict) else seen, np.float32), mask

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Play the unfinished games again."""
        super().load_state_dict(state)
        for row, (seed, played) in enumerate(zip(self._seeds, self._played)):
            self._begin(row, seed)
            for pair in played:
                self._step(row, pair)

    def close(self) -> None:
        """Free what is held; may be called twice."""
        for env in self._envs:
            env.close()

    def __repr__(self) -> str:
        return f'PettingZooGame({self._cfg.env_id or "env_fn"})'
