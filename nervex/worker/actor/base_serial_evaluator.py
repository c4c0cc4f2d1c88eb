"""The evaluator: plays whole episodes with the eval mode and keeps the learning curve."""

from __future__ import annotations

import csv
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from easydict import EasyDict

from nervex.loader.sections import complete
from nervex.utils import ConfigError, tree
from nervex.utils.declare import setting, settings
from nervex.utils.file_helper import naming
from nervex.utils.log_helper import TBLogger, TextLogger
from nervex.utils.part_state import HasState
from nervex.worker.actor.rows import ObsBlock, as_array, in_columns

logger = logging.getLogger(__name__)
_SEED_STRIDE = 10_000  # more than any number of envs
_OF_RETURNS = ('return_mean', 'return_std', 'return_min', 'return_max')
CURVE_COLUMNS = ('train_iter', 'env_step', 'seconds', *_OF_RETURNS, 'length_mean')
#: keys of an episode's last info, of which the first that is there says whether it was won: nerveX's own name, that of
#: Gymnasium's robots, SMAC's
WON = ('win', 'is_success', 'battle_won')


@dataclass(frozen=True)
class Evaluation:
    """
    Overview:
        The episodes of one evaluation.
    Shapes:
        - returns, lengths (:obj:`np.ndarray`): :math:`(n, )`; a return is the team's
        - wins (:obj:`np.ndarray | None`): :math:`(n, )`, 1 where an episode was won; None where the env does not say
        - agent_returns (:obj:`np.ndarray | None`): :math:`(n, A)`, where each agent has a reward of its own
    """

    returns: np.ndarray
    lengths: np.ndarray
    seconds: float
    wins: np.ndarray | None = None
    agent_returns: np.ndarray | None = None

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(self.returns.mean())

    @property
    def win_rate(self) -> float | None:
        """The share of the episodes that were won."""
        return None if self.wins is None else float(self.wins.mean())

    @property
    def agent_means(self) -> list[float] | None:
        """The mean return of each agent."""
        return None if self.agent_returns is None else self.agent_returns.mean(0).tolist()

    def __add__(self, other: Evaluation) -> Evaluation:
        def joined(name: str) -> Any:
            parts = getattr(self, name), getattr(other, name)
            return None if any(part is None for part in parts) else np.concatenate(parts)

        names = ('returns', 'lengths', 'wins', 'agent_returns')
        return Evaluation(seconds=self.seconds + other.seconds, **{name: joined(name) for name in names})


class BaseSerialEvaluator(HasState):
    """
    Overview:
        ``eval(train_iter)`` plays ``n_episode`` episodes, the same ones (by their seeds) each time. Every env plays the
        same number of them (to within one), so that short episodes do not count more often than long ones. A mean
        return that reaches ``stop_val`` (a win rate that reaches ``stop_win_rate``; where both are stated, both) has to
        be confirmed on other episodes, so that luck does not end a run. An episode is won if its last info says so, see
        ``WON``.
    Interfaces:
        eval, evaluate, due, close, env, policy
    """

    config = settings(
        n_episode=setting(5, 'int in [1, 1000000]', 'episodes of one evaluation'),
        eval_freq=setting(50, 'int >= 1 | None', 'updates between two evaluations; None: there are none'),
        max_episode_step=setting(30_000, 'int >= 1 | None', 'an episode is cut there, with its return so far'),
        stop_val=setting(None, 'number | None', 'mean return at which the run counts as solved; None: never'),
        stop_win_rate=setting(None, 'number in [0, 1] | None', 'the same for the share of episodes that are won'),
        confirm_episode=setting(
            None, 'int >= 0 | None', 'more episodes that must reach it too; None: n_episode; 0: no'
        ),
    )

    resume_parts = ('best', '_last_iter', 'last_mean', 'last_win_rate', 'last_agent_means', 'history')

    def __init__(self, cfg: dict | None = None, exp_name: str | None = '.', seed: int | None = None) -> None:
        self._cfg = EasyDict(complete(type(self), cfg, 'evaluator', own_only=False))
        path = f'{exp_name}/log/evaluator'
        self._logger = None if exp_name is None else TextLogger(path, 'evaluator')
        self.tb_logger: Any = None if exp_name is None else TBLogger(path, 'evaluator')
        self.curve_path = None if exp_name is None else os.path.join(path, 'curve.csv')
        self._seed = seed
        self.env: Any = None
        self._policy: Any = None
        self._last_iter: int | None = None
        self._said_cut = False
        self._start = time.perf_counter()
        self.best = float('-inf')
        self.last: Evaluation | None = None
        self.last_mean = float('nan')
        self.last_win_rate: float | None = None
        self.last_agent_means: list[float] | None = None
        self.history: list[tuple[int, int, float]] = []

    @property
    def policy(self) -> Any:
        """The eval mode of the policy."""
        return self._policy

    @policy.setter
    def policy(self, eval_mode: Any) -> None:
        """Set it, and prepare what depends on it."""
        self._policy = eval_mode
        self._hooks = in_columns(eval_mode)

    def due(self, train_iter: int) -> bool:
        """
        Overview:
            Whether ``eval_freq`` updates went by since the last evaluation, or the learner went back behind it. The
            untrained policy is evaluated once. Never with an ``eval_freq`` of None.
        """
        freq = self._cfg.eval_freq
        return freq is not None and (self._last_iter is None or not 0 <= train_iter - self._last_iter < freq)

    def knows(self, train_iter: int) -> bool:
        """Whether the policy after so many updates was evaluated last."""
        return bool(self.history) and self.history[-1][0] == train_iter

    def asked(self, train_iter: int | None) -> None:
        """An evaluation of the policy after so many updates is under way elsewhere; None: it failed."""
        self._last_iter = train_iter

    def eval(self, train_iter: int, n_episode: int | None = None, envstep: int = 0) -> tuple[bool, float]:
        """
        Overview:
            Evaluate, log, and judge.
        Returns:
            - stop_flag (:obj:`bool`): it is solved, with a policy that was trained at all
            - mean (:obj:`float`): mean return
        """
        stop, result = self.judge(n_episode, confirm=train_iter > 0)
        self.record(train_iter, envstep, result)
        return stop and train_iter > 0, result.mean

    def judge(self, n_episode: int | None = None, confirm: bool = True) -> tuple[bool, Evaluation]:
        """Play the episodes; where they are good enough, play others that have to be so too, if asked for."""
        result, cfg = self.evaluate(n_episode), self._cfg
        others = cfg.n_episode if cfg.confirm_episode is None else cfg.confirm_episode
        reached = self._reached(result)
        if reached and confirm and others > 0:
            more = self.evaluate(others, seed_offset=1)
            result = result + more
            reached = self._reached(more) and self._reached(result)
        return reached, result

    def _reached(self, result: Evaluation) -> bool:
        """Whether it reaches what the config states."""
        stop, win_rate = self._cfg.stop_win_rate, result.win_rate
        if stop is not None and win_rate is None:
            text = f'no last info of an episode says whether it was won (by {", ".join(map(repr, WON))})'
            raise ConfigError([f'evaluator.stop_win_rate: got {stop}, but {text}; state evaluator.stop_val instead'])
        stated = [(has, to) for has, to in ((result.mean, self._cfg.stop_val), (win_rate, stop)) if to is not None]
        return bool(stated) and all(has >= to for has, to in stated)

    def record(self, train_iter: int, envstep: int, result: Evaluation) -> None:
        """Note an evaluation in the history, the log and the curve."""
        self._last_iter = train_iter
        self.last, self.last_mean = result, result.mean
        self.last_win_rate, self.last_agent_means = result.win_rate, result.agent_means
        self.history.append((train_iter, envstep, result.mean))
        self._write(train_iter, envstep, result)

    def is_new_best(self) -> bool:
        """Whether the last evaluation beat all before it, the untrained policy's aside; remembers it if so."""
        if self._last_iter == 0 or not self.last_mean > self.best:
            return False
        self.best = self.last_mean
        return True

    def evaluate(
        self, n_episode: int | None = None, seed_offset: int = 0, on_step: Callable[..., None] | None = None
    ) -> Evaluation:
        """
        Overview:
            Play the episodes; writes nothing.
        Arguments:
            - n_episode (:obj:`int | None`): None takes the config's
            - seed_offset (:obj:`int`): another number plays other episodes
            - on_step (:obj:`Callable | None`): called with (observations, actions, step) of every step of the envs
        """
        start = time.perf_counter()
        n = self._cfg.n_episode if n_episode is None else n_episode
        if not isinstance(n, (int, np.integer)) or n < 1:
            raise ValueError(f'n_episode: got {n!r}, must be an int > 0')
        env, env_num = self.env, self.env.env_num
        left = np.full(env_num, n // env_num) + (np.arange(env_num) < n % env_num)
        played: list[list[tuple]] = [[] for _ in range(env_num)]  # return, length, won, returns of the agents
        if self._seed is not None:
            env.seed(self._seed + _SEED_STRIDE * seed_offset, dynamic_seed=True)
        env.reset()
        self._policy.reset()
        steps, so_far = np.zeros(env_num, np.int64), np.zeros((env_num, env.reward_size))  # of episodes that go on
        parked = np.zeros(env_num, bool)  # cut, and cannot begin anew alone
        while (left > 0).any():
            if not (plays := (left > 0) & ~parked).any():
                env.reset()
                self._policy.reset()
                parked[:], steps[:], so_far[:], plays = False, 0, 0.0, left > 0
            ids, obs = env.observe()
            playing = plays[ids]
            if env.partial_steps and not playing.all():
                ids, obs = ids[playing], tree.index(obs, playing)
            action: Any = []
            if len(ids):  # else those that are still to play are in the middle of a step
                data_id, data = self._hooks.data_preprocess(ObsBlock(ids, obs))
                action = as_array(self._hooks.data_postprocess(data_id, self._hooks.forward(data_id, data))['action'])
            step = env.advance(ids, action)
            raw, lost = env.raw_step or step, list(step.abnormal)
            steps[lost] = so_far[lost] = 0
            steps[raw.env_id] += 1
            so_far[raw.env_id] += raw.reward.reshape(len(raw), env.reward_size)
            if not env.partial_steps and not playing.all():  # envs that had to step along play for nothing
                step = step.rows(np.flatnonzero(plays[step.env_id]))
                ids, obs, action = ids[playing], tree.index(obs, playing), action[playing]
            if on_step is not None:
                on_step(ObsBlock(ids, obs), action, step)
            over = np.flatnonzero(step.done).tolist()
            ended, infos = step.env_id[over].tolist(), step.infos if over else {}
            for k, i in zip(over, ended):
                score = float(np.sum(infos[k]['final_eval_reward']))  # rewards may be scaled or clipped
                won = next((float(infos[k][key]) for key in WON if key in infos[k]), np.nan)
                played[i].append((score, int(step.episode_length[k]), won, so_far[i].copy()))
                left[i] -= 1
            steps[ended] = so_far[ended] = 0
            for i in np.flatnonzero((steps >= (self._cfg.max_episode_step or np.inf)) & plays).tolist():
                played[i].append((float(so_far[i].sum()), int(steps[i]), np.nan, so_far[i].copy()))
                left[i] -= 1
                parked[i] = not self._cut(i, begin=left[i] > 0)
                steps[i] = so_far[i] = 0
            for i in [*map(int, lost), *ended]:
                self._policy.reset(data_id=[i])
        returns, lengths, wins, each = map(np.array, zip(*[episode for episodes in played for episode in episodes]))
        said = None if np.isnan(wins).all() else np.nan_to_num(wins)  # an episode that was cut is not won
        agents = each if env.reward_size > 1 else None
        return Evaluation(returns, lengths, time.perf_counter() - start, said, agents)

    def _cut(self, i: int, begin: bool) -> bool:
        """Say once that an episode was cut, and begin another if asked to; answers whether the env can do so alone."""
        if not self._said_cut:
            self._said_cut = True
            logger.warning(
                'an evaluation episode was cut after %d steps, with its return so far (evaluator.max_episode_step); '
                'env %d may have no time limit: env.max_episode_steps gives a Gymnasium env one',
                self._cfg.max_episode_step,
                i,
            )
        if begin and self.env.partial_steps:
            self.env.reset({i: {}})
            self._policy.reset(data_id=[i])
        return self.env.partial_steps

    def _write(self, train_iter: int, envstep: int, result: Evaluation) -> None:
        if self._logger is None:
            return
        r, lengths, seconds = result.returns, result.lengths, result.seconds
        saved = train_iter == 0 or r.mean() > self.best  # see ``is_new_best``
        more = {} if result.win_rate is None else {'win_rate': result.win_rate}
        more.update({f'agent_{k}_return_mean': mean for k, mean in enumerate(result.agent_means or ())})
        self._logger.info(
            f'train_iter {train_iter}, ckpt_name {f"iteration_{train_iter}.pth.tar" if saved else "none"}, '
            f'env_step {envstep}, episode_count {len(r)}, step_count {lengths.sum()}, '
            f'avg_step_per_episode {lengths.mean():.2f}, '
            f'avg_step_per_sec {lengths.sum() / max(seconds, 1e-9):.1f}, avg_time_per_episode {seconds / len(r):.4f}, '
            f'reward_mean {r.mean():.4f}, reward_std {r.std():.4f}, each_reward {[round(float(x), 4) for x in r]}'
            + ''.join(f', {name} {value:.4f}' for name, value in more.items())
        )
        values = {'mean': r.mean(), 'std': r.std(), 'min': r.min(), 'max': r.max()}
        curves = {**{f'reward_{name}': value for name, value in values.items()}, **more}
        self.tb_logger.add_both('evaluator', curves, train_iter, envstep, heard=False)
        passed = round(time.perf_counter() - self._start, 3)
        row = {**dict(zip(CURVE_COLUMNS[2:], [passed, *values.values(), lengths.mean()])), **more}
        self._add_to_curve({'train_iter': train_iter, 'env_step': envstep, **row})
        if self.tb_logger.listener is not None:
            self.tb_logger.listener.eval(row)

    def _add_to_curve(self, row: dict[str, Any]) -> None:
        """A row of curve.csv, whose first row decided about the columns."""
        path, fresh = self.curve_path or '', len(self.history) == 1
        with naming(path), open(path, 'w' if fresh else 'r+', newline='', encoding='utf-8') as f:
            names = list(row) if fresh else f.readline().strip().split(',')
            f.seek(0, os.SEEK_END)
            table = csv.DictWriter(f, names, extrasaction='ignore')
            if fresh:
                table.writeheader()
            table.writerow(row)

    def state_dict(self) -> dict[str, Any]:
        """Best score, when the last evaluation was, and the time so far."""
        return {**super().state_dict(), 'seconds': time.perf_counter() - self._start}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        super().load_state_dict(state)
        self.history = [tuple(h) for h in state['history']]
        self._start = time.perf_counter() - state['seconds']

    def close(self) -> None:
        """Close the envs and the log files; closing twice is fine."""
        if self.env is not None:
            self.env.close()
        if self._logger is not None:
            self._logger.close()
            self.tb_logger.close()
