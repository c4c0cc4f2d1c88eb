"""Who plays the other side of games: players by rule, policies from checkpoints, snapshots of the learner itself."""

from __future__ import annotations

import copy
import csv
import glob
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from easydict import EasyDict

from nervex.envs import Rivals, TwoSidedEnv
from nervex.league import OneVsOneLeague
from nervex.policy.sequences import recalled, remember, state_before_first
from nervex.run.folder import checkpoint_file
from nervex.run.launch import Launch, Passed
from nervex.run.state import KEPT
from nervex.utils import ConfigError, NothingThereError, unknown_name
from nervex.utils.file_helper import remove_file, remove_unfinished, save_file
from nervex.utils.log_helper import TBLogger, TextLogger
from nervex.utils.part_state import HasState
from nervex.worker.actor.rows import ObsBlock, as_array, in_columns

FILE = 'checkpoint'  # what an opponent from a file is called in games
_BRANCHES = {'latest': 'sp', 'pool': 'pool', 'pfsp': 'pfsp'}
_COLUMNS = ('train_iter', 'env_step', 'elo', 'win_rate', 'least_win_rate', 'snapshots', 'games')


class Opponents(Rivals):
    """
    Overview:
        Rivals that may be policies: each is loaded from its checkpoint, plays by its eval mode for all rows that it is
        met in, and is forgotten when ``cache`` others were needed since.
    Arguments:
        - game (:obj:`type[TwoSidedEnv]`): what is played
        - name (:obj:`str`): a player of the game, ``module:function``, a checkpoint, or a folder of a run
        - acts (:obj:`str`), eps (:obj:`float`): policies are 'greedy', or 'sampled' by their logits; how often any
          legal action is taken instead
        - passed (:obj:`Passed`): policy and model that the caller of a run gave in place of what its config names
    """

    def __init__(
        self,
        game: type[TwoSidedEnv],
        name: str = 'random',
        acts: str = 'greedy',
        eps: float = 0.0,
        cache: int = 8,
        passed: Passed | None = None,
    ) -> None:
        by_rule = name in game.players or ':' in name
        super().__init__(name if by_rule else FILE)
        self._game, self._acts, self._eps, self._cache, self._passed = game, acts, eps, cache, passed or Passed()
        self._loaded: OrderedDict[str, Any] = OrderedDict()
        self._files: dict[str, str] = {}
        if not by_rule:
            try:
                if not os.path.exists(name):
                    raise NothingThereError(f'{unknown_name("player", name, game.players)}, and there is no such file')
                self._files[FILE] = os.path.abspath(checkpoint_file(name))
            except NothingThereError as error:
                raise ConfigError([f'env.opponent: {error}']) from error

    def file_of(self, name: str) -> str | None:
        """The checkpoint of a player; None: it plays by rule."""
        return self._files.get(name)

    @property
    def met(self) -> set[str]:
        """Whom the present games are against, but for the player by rule."""
        return {name for duel in self.duels for name in duel.met} - {self.name}

    def act(
        self, name: str, game: TwoSidedEnv, rows: np.ndarray, sides: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """The actions of a player in these rows, in which it has these sides."""
        path = self.file_of(name)
        if path is None:
            return super().act(name, game, rows, sides, rng)
        seen, (mode, first_state) = game.view(rows, sides), self._mode(name, path)
        data_id, data = mode.data_preprocess(ObsBlock(rows, seen))
        sampled, parts = self._acts == 'sampled', game.parts
        if sampled and parts:
            data = {**data, 'seed': int(rng.integers(2**62))}  # the policy itself draws what depends on each other
        if first_state is not None:
            data = {**data, 'prev_state': recalled(game.memory, game.fresh, rows, first_state(data))}
        output = mode.data_postprocess(data_id, mode.forward(data_id, data))
        if first_state is not None:
            remember(game.memory, game.fresh, rows, output['next_state'])
        if not sampled or parts:
            actions = as_array(output['action']).reshape(len(rows), *parts)
        else:
            scores = as_array(output['logit']) + rng.gumbel(size=output['logit'].shape)
            actions = np.where(seen['action_mask'] > 0, scores, -np.inf).argmax(1)
        if sampled and parts and 'log_prob' not in output:
            text = f"got 'sampled', but the policy of {path} does not draw actions of several parts by a seed"
            raise ConfigError([f"env.opponent_acts: {text}; take 'greedy'"])
        if self._eps:
            coins = rng.random(len(rows)) < self._eps
            actions = np.where(
                coins[:, None] if parts else coins, super().act('random', game, rows, sides, rng), actions
            )
        return actions

    def _mode(self, name: str, path: str) -> tuple[Any, Callable[[Any], Any] | None]:
        """The eval mode of a policy; what makes the first state of a row, where it has a memory of the game."""
        loaded = self._loaded.pop(name, None)
        if loaded is None:
            from nervex.run.build import load_policy

            policy: Any = load_policy(path, self._passed.policy, copy.deepcopy(self._passed.model), recorded=False)
            first_state = None
            if getattr(policy, '_remembers', False):
                policy._eval_armor.remove_plugin('main', 'hidden_state')  # states are kept by the games
                first_state = partial(state_before_first, policy._model)
            loaded = in_columns(policy.eval_mode), first_state
        self._loaded[name] = loaded  # the newest last
        while len(self._loaded) > self._cache:
            self._loaded.popitem(last=False)
        return loaded

    def check(self, cfg: dict) -> None:
        """A ConfigError if the policy from a file cannot play the game of this config."""
        if (path := self.file_of(self.name)) is None:
            return
        game = self._game(cfg)
        game.begin(np.arange(1), [np.random.default_rng(0)])
        try:
            self.act(self.name, game, np.arange(1), np.zeros(1, np.int64), np.random.default_rng(0))
        except ConfigError:  # says itself what to do
            raise
        except (RuntimeError, ValueError, IndexError, KeyError) as error:
            text = f'{path}: its policy does not fit {game!r}: {" ".join(str(error).split())[:200]}'
            raise ConfigError([f'env.opponent: {text}; take a checkpoint that was trained on this game']) from error
        finally:
            game.close()


def snapshot_of(learner: Any) -> dict[str, Any]:
    """A checkpoint to be played against: without the optimizer."""
    state = learner.state_dict()
    return {key: state[key] for key in ('model', 'attached', 'config', 'last_iter', 'envstep', 'version')}


class LearnersOpponents(Opponents):
    """Whom a learner meets, by the settings of its run; games begun before there is anybody are against ``random``."""

    def __init__(self, launch: Launch, game: type[TwoSidedEnv]) -> None:
        env, cache = game.complete_cfg(launch.cfg.env), launch.cfg.commander.opponent_cache
        super().__init__(game, 'random', env.opponent_acts, env.opponent_eps, cache, launch.passed)


class SentOpponents(LearnersOpponents):
    """
    Overview:
        Rivals of an actor that is elsewhere than the league: ``take`` what it says before each collect call, and
        ``report`` after it. Games that begin before the first call are against the player ``random``.
    """

    def __init__(self, launch: Launch, game: type[TwoSidedEnv]) -> None:
        super().__init__(launch, game)
        self._names: Sequence[str] = [self.name]
        self._begun = 0
        self._versions: dict[str, int] = {}
        self._ended: list[tuple[str, str]] = []

    def take(self, names: Sequence[str], files: dict[str, tuple[str, int]]) -> None:
        """
        Overview:
            Whom games that begin from now on are against, in turn.
        Arguments:
            - files (:obj:`dict`): of each of them the checkpoint, and a number that changes when it does
        """
        self._names, self._begun = names, 0
        known = self.met
        self._files = {name: path for name, path in self._files.items() if name in known}
        for name, (path, version) in files.items():
            self._files[name] = path
            if self._versions.get(name) != version:
                self._versions[name] = version
                self._loaded.pop(name, None)

    def choose(self, count: int) -> Sequence[str]:
        """The next of those that were sent."""
        first, self._begun = self._begun, self._begun + count
        return [self._names[k % len(self._names)] for k in range(first, first + count)]

    def ended(self, names: Sequence[str], results: Sequence[str]) -> None:
        """Remember it for the report."""
        self._ended += zip(names, results)

    def report(self) -> tuple[list[tuple[str, str]], list[str]]:
        """Games that ended since the last report, as (opponent, result), and whom the present ones are against."""
        ended, self._ended = self._ended, []
        return ended, sorted(self.met)


class SnapshotFiles(HasState):
    """
    Overview:
        Snapshots on disk, which stay for as long as the newest saved states of a run need them.
    Arguments:
        - folder (:obj:`str`), pattern (:obj:`str`): which files they are
    """

    resume_parts = ('needed',)

    def __init__(self, folder: str, pattern: str) -> None:
        self._pattern = os.path.join(glob.escape(folder), pattern)
        self.needed: list[list[str]] = []  # names of files, by the newest states that were saved

    def clean(self, paths: Iterable[str | None], states: int) -> None:
        """Remove the files that are neither among these nor were in so many earlier calls."""
        names = {os.path.basename(path) for path in paths if path is not None}
        self.needed = [sorted(names), *self.needed[:states]]
        kept = {name for names in self.needed for name in names}
        for path in glob.glob(self._pattern):
            if os.path.basename(path) not in kept:
                remove_file(path)


class SelfPlay(LearnersOpponents, HasState):
    """
    Overview:
        The learner against snapshots of itself. ``step`` takes one when it is time to; each game that begins chooses
        one: the newest (``latest``), any (``pool``), or by prioritized fictitious self-play (``pfsp``); games begun
        before there is one are against the player ``random``. Results make win rates and Elo, which are logged and in
        ``log/commander/selfplay.csv``. The oldest snapshot goes when there are more than ``snapshot_keep``; its file
        stays for as long as a saved state of the run needs it.
    """

    resume_parts = ('league', '_files_kept', '_last', '_games')

    def __init__(self, launch: Launch, exp_path: str, game: type[TwoSidedEnv], log: str = 'commander') -> None:
        cfg: EasyDict = launch.cfg.commander
        super().__init__(launch, game)
        self._freq, self._keep = cfg.snapshot_freq, cfg.snapshot_keep
        self._folder = os.path.join(exp_path, 'snapshots')
        remove_unfinished(self._folder)
        branches = {branch: float(name == cfg.selfplay) for name, branch in _BRANCHES.items()}
        settings = {'active_players': {'naive_sp_player': 1}, 'naive_sp_player': {'branch_probs': branches}}
        self.league = OneVsOneLeague({**settings, 'path_policy': self._folder}, launch.seed)
        self._learner = self.league.active_players[0]
        self._last: int | None = None  # updates at the newest snapshot
        self._games = 0
        self._files_kept = SnapshotFiles(self._folder, '*.pth.tar')
        self._saves = launch.cfg.learner.resume.interval_s is not None
        path = f'{exp_path}/log/commander'
        self._text, self._tb = TextLogger(path, log), TBLogger(path, log)
        self._curve = os.path.join(path, 'selfplay.csv')

    # ---- what a Duel asks
    def choose(self, count: int) -> Sequence[str]:
        if not self.league.historical_players:
            return [self.name] * count
        newest = self.league.historical_players[-1]
        found = [self._learner.get_job()['opponent'] for _ in range(count)]
        return [(newest if player is self._learner else player).player_id for player in found]

    def ended(self, names: Sequence[str], results: Sequence[str]) -> None:
        self._games += len(names)
        for name, result in zip(names, results):
            self.league.record({'player_id': (self._learner.player_id, name), 'result': result})

    def file_of(self, name: str) -> str | None:
        return None if name == self.name else os.path.join(self._folder, f'{name}.pth.tar')

    # ---- what the commander asks
    def step(self, learner: Any, env_step: int) -> None:
        """Take a snapshot, if it is time to."""
        if self.is_due(learner.train_iter):
            learner.check_weights()
            save_file(self.place(learner.train_iter), snapshot_of(learner))
            self.admit(learner.train_iter, env_step)
            if not self._saves:
                self.clean(self.met, 0)

    def is_due(self, train_iter: int) -> bool:
        """Whether it is time for a snapshot."""
        return self._last is None or train_iter - self._last >= self._freq

    def place(self, train_iter: int | str) -> str:
        """The file of the snapshot after so many updates."""
        return str(self.file_of(f'{self._learner.player_id}_{train_iter}'))

    def admit(self, train_iter: int, env_step: int) -> None:
        """The snapshot after so many updates is there."""
        self._last = self._learner.total_agent_step = train_iter
        if self.league.historical_players:
            self._tell(train_iter, env_step)
        self.league.admit(self._learner.snapshot())
        while len(self.league.historical_players) > self._keep:
            self.league.retire(self.league.historical_players[0])

    def clean(self, met: Iterable[str], states: int) -> None:
        """Remove the files that neither the games now nor those of so many earlier calls need."""
        names = {*met, *(player.player_id for player in self.league.historical_players)}
        self._files_kept.clean(map(self.file_of, names), states)

    def _tell(self, train_iter: int, env_step: int) -> None:
        rates = self.league.payoff.win_rates(
            self._learner.player_id, [p.player_id for p in self.league.historical_players]
        )
        elo = self.league.elo.ratings.get(self._learner.player_id, self.league.elo.start)
        values = (train_iter, env_step, round(elo, 2), round(float(rates.mean()), 4), round(float(rates.min()), 4))
        row = dict(zip(_COLUMNS, (*values, len(rates), self._games)))
        self._text.info(', '.join(f'{name} {value}' for name, value in row.items()))
        for name in _COLUMNS[2:]:
            self._tb.add_scalar(f'selfplay_iter/{name}', row[name], train_iter)
        with open(self._curve, 'a', newline='', encoding='utf-8') as f:
            table = csv.DictWriter(f, _COLUMNS)
            if not f.tell():
                table.writeheader()
            table.writerow(row)

    # ---- state
    def state_dict(self) -> dict[str, Any]:
        """Payoff, ratings, snapshots, chance; files that no kept state of the run needs any more are removed here."""
        self.clean(self.met, KEPT)
        return self.own_state()

    def own_state(self) -> dict[str, Any]:
        """The same, with every file left alone."""
        return super().state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        super().load_state_dict(state)
        self._loaded.clear()

    def close(self) -> None:
        """Close the logs."""
        self._text.close()
        self._tb.close()
