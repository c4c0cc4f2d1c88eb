"""A look at an env before training: what it shows, takes and pays, how fast it is, and what the policy makes of it."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from easydict import EasyDict

from nervex.config import compile_config
from nervex.envs.env.base_env import get_env_cls
from nervex.envs.gym_env import known_spec
from nervex.policy.suits import TEAMS, action_kind
from nervex.run.build import build_env_managers, build_policy, policy_class
from nervex.run.folder import names_in
from nervex.run.state import load_random_state, random_state
from nervex.utils import tree
from nervex.utils.import_helper import load_attribute

MOST_STEPS, MOST_EPISODES = 5000, 20
_FAR = 10.0  # numbers of this size in observations, or 10 times that in rewards, are learned better if they are scaled


@dataclass(repr=False)
class Probe:
    """
    Overview:
        What was seen, as text by topic (``lines``); ``notes`` say what may not work. It shows itself as these lines, in
        rich as a panel of them.
    """

    title: str
    lines: dict[str, str]
    steps_per_s: float
    parameters: int
    returns: list[float] = field(default_factory=list)  # of the episodes that random play finished
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        rows = [f'{topic:9} {text}' for topic, text in self._rows()]
        return '\n'.join([self.title, *rows])

    def _rows(self) -> list[tuple[str, str]]:
        return [*self.lines.items(), *(('note', text) for text in self.notes)]

    def __rich__(self) -> Any:
        from rich.panel import Panel
        from rich.table import Table

        grid = Table.grid(padding=(0, 2))
        grid.add_column(style='bold')
        grid.add_column()
        for topic, text in self._rows():
            grid.add_row(topic, text, style='yellow' if topic == 'note' else None)
        return Panel(grid, title=self.title, title_align='left', expand=False)


def probe(cfg: str | Mapping, seed: int = 0, seconds: float = 0.5, overrides: Iterable[str] = ()) -> Probe:
    """
    Overview:
        Play at random in one env for a moment, and build the policy's net. Nothing of a run is touched: not the random
        state of this process, no file. What cannot run at all is the error that the run would have.
    Arguments:
        - cfg (:obj:`str | Mapping`): a config; what ``config_for`` answers
        - seconds (:obj:`float`): how long to play at most; a step that takes longer is waited for
        - overrides (:obj:`Iterable[str]`): ``'path=value'`` settings
    """
    said = logging.getLogger('nervex.config')
    level = said.level
    said.setLevel(logging.ERROR)  # the run says it
    try:
        resolved = compile_config(cfg, overrides=overrides, needs_env=True)
    finally:
        said.setLevel(level)
    before = random_state()
    try:
        with contextlib.ExitStack() as stack:
            return _look(resolved, seed, seconds, stack)
    finally:
        load_random_state(before)


def _look(cfg: EasyDict, seed: int, seconds: float, stack: contextlib.ExitStack) -> Probe:
    kind = 'subprocess' if getattr(get_env_cls(cfg.env), 'one_a_process', False) else 'base'
    env = {**cfg.env, 'actor_env_num': 1, 'env_manager_type': kind, 'manager': {}, 'replay_path': None}
    (manager,) = build_env_managers(EasyDict(cfg, env=env), None, seed, stack, roles=('actor',))
    info, play = manager.env_info(), _Play()
    draw = _at_random(info, np.random.default_rng(seed))
    if draw is not None:
        play.go(manager, draw, seconds)
    policy = build_policy(cfg, policy_class(cfg, None), None, info, ('eval',))
    net = policy._model
    parameters = sum(p.numel() for p in net.parameters())
    limit, scaled = _time_limit(cfg.env), cfg.env.manager.get('norm_obs')
    ends = '' if limit is None else f', at most {limit:,} steps an episode'
    counts = f'{cfg.env.actor_env_num} collect, {cfg.env.evaluator_env_num} evaluate ({cfg.env.env_manager_type})'
    lines = {
        'env': counts + ends,
        'sees': _shown(info.obs_space.shape, info.obs_space.value)
        + (', scaled by mean and variance' if scaled else ''),
        'does': _done(info, bool(cfg.env.get('use_act_scale'))),
        'random': play.episodes(),
        'reward': play.paid() + (', scaled by its spread' if cfg.env.manager.get('norm_reward') else ''),
        'speed': f'{play.speed:,.0f} steps/s of one env' if play.steps else 'not measured',
        'net': f'{type(net).__name__}, {parameters:,} parameters',
        'learns': _learning(cfg),
        'run': _length(cfg),
    }
    notes = [*play.notes(limit, bool(scaled), bool(cfg.env.manager.get('norm_reward'))), *_of_actions(info)]
    return Probe(' by '.join(names_in(cfg)), lines, play.speed, parameters, play.returns, notes)


class _Play:
    """Random play, and what came of it."""

    def __init__(self) -> None:
        self.steps, self.seconds, self.largest = 0, 0.0, 0.0
        self.rewards: list[float] = []
        self.returns: list[float] = []
        self.lengths: list[int] = []

    def go(self, manager: Any, draw: Any, seconds: float) -> None:
        """Play until one of the limits is reached; at least one step."""
        manager.reset()
        start = time.perf_counter()
        while self.steps < MOST_STEPS and self.seconds < seconds:
            if len(self.returns) >= MOST_EPISODES and any(self.rewards):
                break
            ids, obs = manager.observe()
            step = manager.advance(ids, draw(obs))
            self.steps += len(step)
            self.rewards.append(float(step.reward.sum()))
            if self.steps % 16 == 1:  # some are enough
                seen = [np.abs(leaf).max() for leaf in tree.leaves(step.obs) if leaf.dtype.kind == 'f' and leaf.size]
                self.largest = max([self.largest, *(float(x) for x in seen)])
            for k in np.flatnonzero(step.done).tolist():
                self.returns.append(float(np.sum(step.infos[k]['final_eval_reward'])))
                self.lengths.append(int(step.episode_length[k]))
            self.seconds = time.perf_counter() - start

    @property
    def speed(self) -> float:
        """Steps per second; 0 where nothing was played."""
        return self.steps / self.seconds if self.seconds else 0.0

    def episodes(self) -> str:
        """The episodes in words."""
        if not self.steps:
            return 'not played: it would have to know which actions are legal'
        if not self.returns:
            return f'no episode ended in {self.steps:,} steps'
        r, long = np.array(self.returns), np.mean(self.lengths)
        spread = '' if len(r) == 1 else f' ({r.min():.4g} to {r.max():.4g})'
        return f'{_many(len(r), "episode")} of {long:,.0f} steps, return {r.mean():.4g}{spread}'

    def paid(self) -> str:
        """The rewards in words."""
        if not self.rewards:
            return 'not seen'
        r = np.array(self.rewards)
        return f'{r.min():.3g} to {r.max():.3g} a step, {(r != 0).mean():.0%} are not 0'

    def notes(self, limit: int | None, scales_obs: bool, scales_reward: bool) -> Iterator[str]:
        """What may not work."""
        if not self.steps:
            return
        if not any(self.rewards):
            yield f'no reward in {self.steps:,} steps at random: it may take many steps until the first one is found'
        if not self.returns and limit is None and (self.seconds > 0.1 or self.steps >= MOST_STEPS):
            yield 'no episode ended: an env without an end wants env.max_episode_steps (of a Gymnasium env)'
        if self.largest > _FAR and not scales_obs:
            yield f'numbers up to {self.largest:.3g} in observations: env.manager.norm_obs=True would scale them'
        if max(map(abs, self.rewards)) > 10 * _FAR and not scales_reward:
            yield f'rewards up to {max(map(abs, self.rewards)):.3g}: env.manager.norm_reward=True would scale them'


def _at_random(info: Any, rng: np.random.Generator) -> Callable[[Any], np.ndarray] | None:
    """Random actions for a block of observations; None where they might not be legal."""
    kind, space, value = action_kind(info), info.act_space, info.act_space.value
    masked = isinstance(info.obs_space.shape, dict) and 'action_mask' in info.obs_space.shape
    if kind == 'discrete' and masked:
        return lambda obs: (rng.random(obs['action_mask'].shape) * (obs['action_mask'] != 0)).argmax(-1)
    if kind is None or kind in TEAMS or masked:
        return None
    if kind == 'continuous':
        bounds = np.asarray(value['min'], np.float32), np.asarray(value['max'], np.float32)
        low, high = (np.where(np.isfinite(bound), bound, end) for bound, end in zip(bounds, (-1.0, 1.0)))
        return lambda obs: rng.uniform(low, high, (_rows(obs), *space.shape)).astype(np.float32)
    shape = () if kind == 'discrete' else (len(value['n']),)
    return lambda obs: rng.integers(0, value['n'], (_rows(obs), *shape))


def _rows(obs: Any) -> int:
    return len(next(iter(tree.leaves(obs))))


# ---- in words
def _time_limit(env: Mapping) -> int | None:
    """That of the config, or of the registration."""
    if env.get('max_episode_steps') is not None or not env.get('env_id') or env.get('env_type') != 'gym':
        return env.get('max_episode_steps')
    return known_spec(env['env_id']).max_episode_steps


def _shown(shape: Any, value: Any) -> str:
    if isinstance(shape, dict):
        return '; '.join(f'{key}: {_shown(part, (value or {}).get(key))}' for key, part in shape.items())
    kind = np.dtype((value or {}).get('dtype', np.float32)).name
    if len(shape or ()) == 3:
        last = 'last' if load_attribute('nervex.model.common.encoder:channels_last')(shape) else 'first'
        return f'an image, {"x".join(map(str, shape))} of {kind}, channels {last}'
    flat = shape and len(shape) == 1
    return f'{_many(shape[0], "number")} of {kind}' if flat else f'an array {tuple(shape or ())} of {kind}'


def _many(count: int, what: str) -> str:
    return f'{count:,} {what}' if count == 1 else f'{count:,} {what}s'


def _done(info: Any, stretched: bool) -> str:
    kind, value = action_kind(info), info.act_space.value
    if kind == 'discrete':
        return f'one of {value["n"]} actions'
    if kind == 'multi_discrete':
        return f'a choice of each of {", ".join(map(str, value["n"]))}'
    if kind == 'continuous':
        to = ", stretched to the env's bounds" if stretched else ''
        return _many(info.act_space.shape[0], 'number') + to
    return f'actions of shape {info.act_space.shape}'


def _of_actions(info: Any) -> list[str]:
    value = info.act_space.value or {}
    if action_kind(info) != 'continuous' or all(np.isfinite(value[end]).all() for end in ('min', 'max')):
        return []
    return ['actions have no bounds: what the policy gives lies in [-1, 1]']


def _learning(cfg: EasyDict) -> str:
    learn, rows = cfg.policy.learn, cfg.actor.get('n_sample')
    passes = f'{learn.epochs} pass{"es" if learn.epochs > 1 else ""} over' if learn.get('epochs') else None
    often = passes or f'{_many(learn.train_step, "update")} after'
    unroll = cfg.policy.collect.get('unroll_len', 1)
    what = 'steps' if unroll == 1 else f'sequences of {unroll} steps'
    amount = _many(cfg.actor.n_episode, 'episode') if rows is None else f'{rows:,} {what}'
    source = '' if cfg.policy.on_policy else ' from the buffer'
    return f'{often} every {amount}, batches of {learn.batch_size}{source}, rate {learn.learning_rate:g}'


def _length(cfg: EasyDict) -> str:
    limits = {'env steps': cfg.commander.max_env_step, 'updates': cfg.commander.max_train_iter}
    ends = ', '.join(f'{n:,} {what}' for what, n in limits.items() if n not in (None, -1)) or 'no limit'
    stop, freq = cfg.evaluator.stop_val, cfg.evaluator.eval_freq
    episodes = _many(cfg.evaluator.n_episode, 'episode')
    seen = 'never' if freq is None else f'{episodes} every {_many(freq, "update")}'
    return f'{ends}; evaluated: {seen}' + ('' if stop is None else f', ends at {stop:g}')
