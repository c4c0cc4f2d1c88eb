"""The league of a run, with its folder: whom its players' runs are made of, its snapshots, what is told of it."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from easydict import EasyDict

from nervex.league import create_league
from nervex.run.build import build_policy, check_opponents, env_info, policy_class
from nervex.run.folder import PLAYERS, RunFolder, checkpoint_file, saved_run, set_aside
from nervex.run.launch import Launch
from nervex.run.opponents import SnapshotFiles
from nervex.utils import ConfigError, NervexError
from nervex.utils.file_helper import remove_unfinished
from nervex.utils.log_helper import TBLogger, TextLogger
from nervex.utils.part_state import HasState
from nervex.worker.learner.checkpoints import load_checkpoint_file

_SEEDS = 1_000_003  # between the seeds of two players


def check_league(launch: Launch) -> Any:
    """The game of a league; a ConfigError, before anything starts, if it has one side or a checkpoint does not fit."""
    game = check_opponents(launch, 'commander.commander_type', 'league')
    given = launch.cfg.commander.league.pretrain_checkpoint_path
    if launch.saved is None and given:
        cfg, passed = launch.cfg, launch.passed
        info, model = env_info(cfg, passed.env_setting), copy.deepcopy(passed.model)
        policy = build_policy(cfg, policy_class(cfg, passed.policy), model, info, ('learn',))
        for category, path in given.items():
            try:
                policy.learn_mode.load_state_dict(load_checkpoint_file(checkpoint_file(path)))
            except (NervexError, RuntimeError, ValueError, KeyError) as error:
                said = ' '.join(str(error).split())[:300]
                text = f'{path} is nothing that a player can begin with: {said}; take a checkpoint of the same network'
                raise ConfigError([f'commander.league.pretrain_checkpoint_path.{category}: {text}']) from error
    return game


class LeagueHome(HasState):
    """
    Overview:
        What a league has in serial and in parallel mode: ``league/`` with its checkpoints, a log, and the settings of
        the run that each active player has in ``players/<id>``.
    Arguments:
        - stack (:obj:`ExitStack`): closes the logs
        - resumed (:obj:`bool`): False: what an earlier run left in ``league`` is moved to ``league_1``, ...
    """

    resume_parts = ('league', '_files')

    def __init__(self, launch: Launch, folder: RunFolder, stack: contextlib.ExitStack, resumed: bool) -> None:
        self._launch, self._folder = launch, os.path.abspath(folder.path)
        commander = launch.cfg.commander
        self.path = os.path.join(self._folder, 'league')
        os.makedirs(self.path, exist_ok=True)
        remove_unfinished(self.path)
        if os.listdir(self.path) and not resumed:
            set_aside(self.path)
            os.makedirs(self.path)
        given = {kind: checkpoint_file(path) for kind, path in commander.league.pretrain_checkpoint_path.items()}
        own = {'path_policy': self.path, 'pretrain_checkpoint_path': given}
        self.league = create_league({**commander.league, **own}, seed=launch.seed)
        self._keep = commander.snapshot_keep
        self._files = SnapshotFiles(self.path, '*_ckpt_[0-9]*.pth.tar')
        log = os.path.join(folder.log, 'commander')
        self._text, self._tb = TextLogger(log, 'commander'), TBLogger(log, 'commander')
        stack.callback(self._text.close)
        stack.callback(self._tb.close)

    def launch_of(self, name: str, rivals: Any, resumed: bool) -> Launch:
        """The run of an active player; the first one alone decides whether the league has reached what it is for."""
        names = self.league.active_players_ids
        k, path, cfg = names.index(name), os.path.join(self._folder, PLAYERS, name), self._launch.cfg
        commander = {**cfg.commander, 'commander_type': 'serial'}
        for key in ('league', 'turn_rounds'):
            commander.pop(key)
        evaluator = {**cfg.evaluator, **({'stop_val': None, 'stop_win_rate': None} if k else {})}
        parallel = {**cfg.parallel}
        if parallel['actor_num'] is None:
            parallel['actor_num'] = max(1, (os.cpu_count() or 1) // len(names))
        own = EasyDict({**cfg, 'exp_name': path, 'commander': commander, 'evaluator': evaluator, 'parallel': parallel})
        passed, saved = replace(self._launch.passed, rivals=rivals), saved_run(path) if resumed else None
        return Launch(own, self._launch.seed + k * _SEEDS, passed, saved, self._launch.trust)

    # ---- checkpoints
    def file_of(self, name: str) -> str:
        """The checkpoint of a player, which may have left the league while games against it go on."""
        if name in self.league.payoff:
            return self.league.player(name).checkpoint_path
        parent, _, step = name.rpartition('_')
        return os.path.join(self.path, f'{parent}_ckpt_{step}.pth.tar')

    def start_of(self, name: str) -> str | None:
        """The checkpoint that a player begins with; None: with the weights that its learner has."""
        given = self.league.cfg['pretrain_checkpoint_path']
        return given[self.league.player(name).category] if self.league.cfg['use_pretrain'] else None

    def first_of(self, name: str) -> str | None:
        """Where the weights are to be kept that players of this one's category begin anew from; None: they are."""
        category = self.league.player(name).category
        given = self.league.cfg['pretrain_checkpoint_path']
        path = given.setdefault(category, os.path.join(self.path, f'first_{category}.pth.tar'))
        return path if os.path.dirname(path) == self.path and not os.path.exists(path) else None

    def learned(self, name: str, train_iter: int) -> tuple[bool, str | None]:
        """
        Overview:
            A player's checkpoint is that of this update: the league may take a snapshot of it.
        Returns:
            - taken (:obj:`bool`): whether it did
            - reset (:obj:`str | None`): the checkpoint from which the player is to begin anew; None: it goes on
        """
        league, before = self.league, len(self.league.historical_players)
        league.update_active_player({'player_id': name, 'train_step': train_iter})
        reset = league.judge_snapshot(name)
        if len(league.historical_players) == before:
            return False, None
        self._tell(name, train_iter, reset is not None)
        own = [player for player in league.historical_players if player.parent_id == name]
        for player in own[: -self._keep]:
            league.retire(player)
        return True, reset

    def clean(self, met: Iterable[str], states: int) -> None:
        """Remove snapshots that neither the league, games against these, nor so many saved states need."""
        paths = [player.checkpoint_path for player in self.league.historical_players]
        self._files.clean([*paths, *(self.file_of(name) for name in met)], states)

    def _tell(self, name: str, step: int, anew: bool) -> None:
        others = [p.player_id for p in [*self.league.active_players, *self.league.historical_players]]
        rates = self.league.payoff.win_rates(name, [other for other in others if other != name])
        elo = self.league.elo.ratings.get(name, self.league.elo.start)
        skill = self.league.true_skill.conservative(name)
        text = f'snapshot of {name} at update {step}: Elo {elo:.1f}, TrueSkill {skill:.1f} almost surely, win rate '
        self._text.info(f'{text}mean {np.mean(rates):.3f}, least {min(rates):.3f}{", it begins anew" if anew else ""}')
        told = {'elo': elo, 'true_skill': skill, 'win_rate': np.mean(rates), 'least_win_rate': min(rates)}
        for key, value in told.items():
            self._tb.add_scalar(f'{name}/{key}', float(value), step)

    # ---- state
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what ``state_dict`` gave, in a folder that may have been moved."""
        super().load_state_dict(state)
        own = [player for player in self.league.historical_players if player.parent_id != player.player_id]
        for player in [*self.league.active_players, *own]:
            player.checkpoint_path = os.path.join(self.path, os.path.basename(player.checkpoint_path))
