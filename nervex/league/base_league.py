"""The league: players, who plays whom, snapshots, and a state that survives whatever happens."""

from __future__ import annotations

import os
import shutil
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from nervex.league.player import ActivePlayer, HistoricalPlayer, Player, Roster, create_player
from nervex.league.rating import Elo, TrueSkill
from nervex.league.settings import complete_league
from nervex.league.shared_payoff import create_payoff, flat
from nervex.utils import LEAGUE_REGISTRY, unknown_name
from nervex.utils.declare import setting, settings
from nervex.utils.file_helper import atomic_write, read_file, save_file
from nervex.utils.import_helper import import_modules

STATE_FILE = 'league.pth.tar'
_SCORES = {'wins': 1.0, 'draws': 0.5, 'losses': 0.0}


class BaseLeague(ABC):
    """
    Overview:
        Hands out jobs (which active player plays whom), records their results, and keeps a snapshot of a player when it
        has been trained enough. A subclass says what a job consists of. All calls may come from several threads.
    Arguments:
        - cfg (:obj:`Mapping | None`): settings over the ``config`` of the class; a section for each type of player
        - seed (:obj:`int | None`): of all matchmaking
    Interfaces:
        get_job_info, finish_job, record, update_active_player, judge_snapshot, admit, retire, save_checkpoint, save,
        load, state_dict, load_state_dict
    """

    config: dict[str, Any] = settings(
        league_type=setting('one_vs_one', 'str', 'registered name'),
        import_names=setting([], 'list of str', 'modules to import first'),
        player_category=setting(['default'], 'list of str', 'kinds of sides; each has every type of player'),
        path_policy=setting('./policy', 'str', 'folder of checkpoints'),
        active_players=setting(
            {}, 'dict of int >= 0', "type of player -> how many a category; {}: one of the league's usual type"
        ),
        use_pretrain=setting(False, 'bool', 'active players begin with pretrain_checkpoint_path'),
        use_pretrain_init_historical=setting(False, 'bool', 'and it takes part as a first opponent'),
        pretrain_checkpoint_path=setting({}, 'dict of str', 'category -> checkpoint'),
        payoff=setting({'type': 'battle'}, 'dict', 'settings of the payoff'),
        max_active_player_job=setting(3, 'int >= 1', 'unfinished jobs of a player'),
    )
    default_player = 'naive_sp_player'

    def __init__(self, cfg: Mapping[str, Any] | None = None, seed: int | None = None) -> None:
        import_modules((cfg or {}).get('import_names'))
        self.cfg = complete_league(type(self), cfg)
        self._lock = threading.RLock()
        self._generator = np.random.default_rng(seed)
        self.payoff = create_payoff(self.cfg['payoff'])
        self.elo, self.true_skill = Elo(), TrueSkill()
        self._roster = Roster(self.payoff)
        self.active_players: list[ActivePlayer] = []
        self.historical_players: list[HistoricalPlayer] = []
        self._job_num = 0  # jobs handed out so far
        self._open_jobs: dict[str, str] = {}  # id of an unfinished job -> its active player
        given, categories = self.cfg['pretrain_checkpoint_path'], self.cfg['player_category']
        wanted = self.cfg['use_pretrain'] or self.cfg['use_pretrain_init_historical']
        if wanted and (missing := [category for category in categories if category not in given]):
            raise ValueError(f'league.pretrain_checkpoint_path: no checkpoint for the categories {missing}')
        for category in categories:
            self._found(category)

    def _found(self, category: str) -> None:
        pretrained = self.cfg['pretrain_checkpoint_path'].get(category)
        for kind, count in (self.cfg['active_players'] or {self.default_player: 1}).items():
            for number in range(count):
                name = f'{kind}_{category}_{number}'
                path = os.path.join(self.cfg['path_policy'], f'{name}_ckpt.pth.tar')
                player: Any = create_player(
                    self.cfg, kind, category, self.payoff, path, name, generator=self._generator
                )
                player.join(self._roster)
                self.active_players.append(player)
                self.payoff.add_player(player)
                self._roster.add(player)
                if self.cfg['use_pretrain'] and not os.path.exists(path):
                    self.save_checkpoint(pretrained, path)
        if self.cfg['use_pretrain_init_historical']:
            name = f'pretrain_{category}'
            self.admit(HistoricalPlayer({}, category, self.payoff, pretrained, name, parent_id=name))

    # ---- players
    @property
    def active_players_ids(self) -> list[str]:
        """Ids of the players that learn."""
        return [player.player_id for player in self.active_players]

    def player(self, player_id: str) -> Player:
        """The player of this id; KeyError names the nearest one."""
        for player in self._roster.players:
            if player.player_id == player_id:
                return player
        raise KeyError(unknown_name('player of the league', player_id, [p.player_id for p in self._roster.players]))

    def _active(self, player_id: str) -> ActivePlayer:
        player = self.player(player_id)
        if not isinstance(player, ActivePlayer):
            raise ValueError(f'{player_id} does not learn; active players are {", ".join(self.active_players_ids)}')
        return player

    def admit(self, player: HistoricalPlayer) -> None:
        """A snapshot takes part from now on."""
        self.historical_players.append(player)
        self.payoff.add_player(player)
        self._roster.add(player)
        for rating in (self.elo, self.true_skill):
            rating.copy(player.parent_id, player.player_id)

    def retire(self, player: HistoricalPlayer) -> None:
        """A snapshot takes part no more; what is known of its games is forgotten."""
        self.historical_players.remove(player)
        self._roster.remove(player)
        self.payoff.remove_player(player)
        self.elo.ratings.pop(player.player_id, None)
        self.true_skill.skills.pop(player.player_id, None)

    # ---- jobs
    def get_job_info(self, player_id: str | None = None, eval_flag: bool = False) -> dict[str, Any] | None:
        """
        Overview:
            The next job of an active player.
        Arguments:
            - player_id (:obj:`str | None`): None: the one with the fewest unfinished jobs
            - eval_flag (:obj:`bool`): an evaluation, which counts as no job
        Returns:
            - job (:obj:`dict | None`): ``job_id``, ``launch_player``, ``player_id`` and ``checkpoint_path`` (one a
              side), ``player_active_flag``, and what the kind of league adds; None if the player has
              ``max_active_player_job`` unfinished jobs
        """
        with self._lock:
            load = dict.fromkeys(self.active_players_ids, 0)
            for owner in self._open_jobs.values():
                load[owner] += 1
            if player_id is None:
                player_id = min(load, key=lambda name: load[name])
            player = self._active(player_id)
            if not eval_flag and load[player_id] >= self.cfg['max_active_player_job']:
                return None
            job = {'launch_player': player_id, 'eval_flag': eval_flag, **self._get_job_info(player, eval_flag)}
            job['job_id'] = f'{player_id}/{self._job_num}'
            self._job_num += 1
            if not eval_flag:
                self._open_jobs[job['job_id']] = player_id
            return job

    def finish_job(self, info: Mapping[str, Any]) -> bool:
        """
        Overview:
            Record the result of a job, once.
        Arguments:
            - info (:obj:`Mapping`): ``job_id``, ``player_id`` and ``result`` as the payoff takes them; a job that
              failed has ``result=[]``
        Returns:
            - counted (:obj:`bool`): False for a job that is finished already, or was never handed out
        """
        with self._lock:
            if self._open_jobs.pop(info.get('job_id', ''), None) is None:
                return False
            return self.record(info)

    def record(self, info: Mapping[str, Any]) -> bool:
        """Games that no job was for: ``player_id`` and ``result``; False if one of the players does not take part."""
        return self.payoff.update(info)

    # ---- training
    def update_active_player(self, info: Mapping[str, Any]) -> None:
        """
        Overview:
            A learner tells how far a player is.
        Arguments:
            - info (:obj:`Mapping`): ``player_id`` and ``train_step`` (or ``train_iteration``)
        """
        with self._lock:
            player = self._active(info['player_id'])
            step = info['train_step'] if 'train_step' in info else info.get('train_iteration')
            if step is not None:
                player.total_agent_step = int(step)
            self._update_player(player, info)

    def judge_snapshot(self, player_id: str) -> str | None:
        """
        Overview:
            Keep a snapshot of a player if it has been trained enough. Its checkpoint must be up to date.
        Returns:
            - reset (:obj:`str | None`): the checkpoint from which the player is to begin anew; None: it goes on
        """
        with self._lock:
            player = self._active(player_id)
            if not player.is_trained_enough():
                return None
            snapshot = player.snapshot()
            self.save_checkpoint(player.checkpoint_path, snapshot.checkpoint_path)
            self.admit(snapshot)
            return self._mutate_player(player)

    def save_checkpoint(self, src_checkpoint: str, dst_checkpoint: str) -> None:
        """Copy a checkpoint, whole or not at all."""
        with open(src_checkpoint, 'rb') as source, atomic_write(dst_checkpoint) as copy:
            shutil.copyfileobj(source, copy)

    # ---- what a kind of league says
    @abstractmethod
    def _get_job_info(self, player: ActivePlayer, eval_flag: bool = False) -> dict[str, Any]:
        """``player_id``, ``checkpoint_path``, ``player_active_flag``, and more."""

    @abstractmethod
    def _mutate_player(self, player: ActivePlayer) -> str | None:
        """What happens to a player after its snapshot; the checkpoint to begin anew from, or None."""

    @abstractmethod
    def _update_player(self, player: ActivePlayer, info: Mapping[str, Any]) -> None:
        """What a learner's message changes beside the step."""

    # ---- state
    def state_dict(self) -> dict[str, Any]:
        """Everything but the checkpoints of players; loads with ``weights_only=True``."""
        with self._lock:
            return {
                'version': 1,
                'payoff': self.payoff.state_dict(),
                'elo': self.elo.state_dict(),
                'true_skill': self.true_skill.state_dict(),
                'active': {player.player_id: player.state_dict() for player in self.active_players},
                'historical': [
                    [p.category, p.checkpoint_path, p.player_id, p.total_agent_step, p.parent_id]
                    for p in self.historical_players
                ],
                'jobs': self._job_num,
                'open_jobs': dict(self._open_jobs),
                'generator': self._generator.bit_generator.state,
            }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what ``state_dict`` gave, in a league of the same settings."""
        with self._lock:
            if state.get('version') != 1:
                raise ValueError(f'the saved league has version {state.get("version")}, this nervex reads version 1')
            if set(state['active']) != set(self.active_players_ids):
                raise ValueError(
                    f'the saved league has the active players {sorted(state["active"])}, this one has '
                    f'{sorted(self.active_players_ids)}: resume it with the settings that it began with'
                )
            for player in self.active_players:
                player.load_state_dict(state['active'][player.player_id])
            self.historical_players = [
                HistoricalPlayer({}, category, self.payoff, path, name, steps, parent_id=parent)
                for category, path, name, steps, parent in state['historical']
            ]
            self.payoff.load_state_dict(state['payoff'])
            self._roster.clear()
            for member in (*self.active_players, *self.historical_players):
                self._roster.add(member)
            self.elo.load_state_dict(state['elo'])
            self.true_skill.load_state_dict(state['true_skill'])
            self._job_num, self._open_jobs = state['jobs'], dict(state['open_jobs'])
            self._generator.bit_generator.state = state['generator']

    def save(self, folder: str) -> str:
        """Write the state into a folder, whole or not at all; answers the file."""
        path = os.path.join(folder, STATE_FILE)
        save_file(path, self.state_dict())
        return path

    def load(self, folder: str) -> bool:
        """Go on from the state in a folder; False if there is none."""
        path = os.path.join(folder, STATE_FILE)
        if not os.path.exists(path):
            return False
        self.load_state_dict(read_file(path))
        return True

    def reopen_jobs(self) -> list[str]:
        """After a resume: forget the jobs that were under way, since nobody will finish them; answers their ids."""
        with self._lock:
            lost, self._open_jobs = list(self._open_jobs), {}
            return lost

    def __repr__(self) -> str:
        return f'{type(self).__name__}({len(self.active_players)} active, {len(self.historical_players)} historical)'


@LEAGUE_REGISTRY.register('one_vs_one')
class OneVsOneLeague(BaseLeague):
    """Every job is a match of an active player (home) against an opponent (away); ratings follow the games."""

    def _get_job_info(self, player: ActivePlayer, eval_flag: bool = False) -> dict[str, Any]:
        found = player.get_job(eval_flag)
        opponent, policies = found['opponent'], [player, *([] if eval_flag else [found['opponent']])]
        return {
            'agent_num': len(policies),
            'player_id': [player.player_id, opponent if eval_flag else opponent.player_id],
            'checkpoint_path': [policy.checkpoint_path for policy in policies],
            'player_active_flag': [isinstance(policy, ActivePlayer) for policy in policies],
            'branch': found['branch'],
        }

    def record(self, info: Mapping[str, Any]) -> bool:
        """Games that no job was for; ratings follow them."""
        home, away = info['player_id']
        if not super().record(info):
            return False
        if home != away:
            for result in flat(info['result']):
                for rating in (self.elo, self.true_skill):
                    rating.update(home, away, _SCORES[result])
        return True

    def _mutate_player(self, player: ActivePlayer) -> str | None:
        reset = self.cfg['pretrain_checkpoint_path'].get(player.category)
        return player.mutate({'reset_checkpoint_path': reset})

    def _update_player(self, player: ActivePlayer, info: Mapping[str, Any]) -> None:
        if info.get('eval_win_rate', 0.0) > player._cfg['strong_win_rate']:
            player.increment_eval_difficulty()


def create_league(cfg: Mapping[str, Any], **kwargs: Any) -> BaseLeague:
    """Import ``cfg['import_names']``, then make the league registered as ``cfg['league_type']``."""
    import_modules(cfg.get('import_names') or [])
    return LEAGUE_REGISTRY.get(cfg.get('league_type', 'one_vs_one'))(cfg, **kwargs)


def register_league(name: str, cls: type[BaseLeague]) -> None:
    """Register a league under a name that configs may use."""
    LEAGUE_REGISTRY.register(name, cls)
