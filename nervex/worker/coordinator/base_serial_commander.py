"""The serial commander: tells the policy's modes what changed, and when the run is over."""

from __future__ import annotations

from typing import Any

from easydict import EasyDict

from nervex.loader.sections import complete
from nervex.utils import COMMANDER_REGISTRY
from nervex.utils.declare import setting, settings


@COMMANDER_REGISTRY.register('serial')
class BaseSerialCommander:
    """
    Overview:
        ``step()`` passes the counters to the policy's command mode, and its answers (exploration, ...) to the modes.
    """

    config = settings(
        commander_type=setting('serial', 'str | class', 'registered name; parallel mode has parallel.commander_type'),
        max_env_step=setting(10_000_000, 'whole >= 1 | None', 'env steps after which the run ends; None: never'),
        max_train_iter=setting(None, 'whole >= 1 | None', 'updates after which the run ends; None: never'),
        max_episode=setting(None, 'whole >= 1 | -1 | None', 'collected episodes after which the run ends; -1: never'),
        selfplay=setting(
            None,
            "'latest' | 'pool' | 'pfsp' | None",
            'games are against snapshots of the learner: the newest, any, or those that are hard to beat; None: no',
        ),
        snapshot_freq=setting(1000, 'whole >= 1', 'updates between two snapshots'),
        snapshot_keep=setting(50, 'int >= 1', 'snapshots that are played against; the oldest goes'),
        opponent_cache=setting(16, 'int >= 1', 'opponents whose networks are in memory'),
    )

    many_learners = False  # whether the run is one of several learners

    def __init__(
        self,
        cfg: dict | None,
        learner: Any = None,
        actor: Any = None,
        evaluator: Any = None,
        replay_buffer: Any = None,
        policy: Any = None,
    ) -> None:
        self._cfg = EasyDict(complete(type(self), cfg, 'commander', own_only=False))
        self._learner, self._actor, self._evaluator, self._buffer = learner, actor, evaluator, replay_buffer
        self.policy = policy
        self.selfplay: Any = None  # chooses opponents, where the learner plays against itself
        self.settings: dict[str, dict[str, Any]] = {}  # the last ones given, by mode
        if actor is not None:
            actor.settings = self.settings  # the actor's log shows them

    @classmethod
    def learners(cls, cfg: Any) -> int:
        """How many learners a run of these settings has, each with what it needs."""
        return 1

    def info(self) -> dict[str, Any]:
        """What the policy's command mode is told."""
        steps = self._actor.total_step
        counters = dict(envstep=steps, total_collect_step=steps, total_episode=self._actor.total_episode)
        return {**self._learner.learn_info, **counters, 'progress': self.progress()}

    def step(self) -> None:
        """Ask the policy for new settings and hand them on."""
        info = self.info()
        for mode, worker in self._workers().items():
            if given := self.ask(mode, info):
                worker.policy.set_setting(mode, given)
        if self.selfplay is not None:
            self.selfplay.step(self._learner, info['envstep'])

    def ask(self, mode: str, info: dict[str, Any] | None = None) -> dict[str, Any]:
        """The policy's settings for a mode, as things stand; remembered for the log."""
        given = getattr(self.policy, f'get_setting_{mode}')(self.info() if info is None else info)
        if given:
            self.settings[mode] = given
        return given

    def _workers(self) -> dict[str, Any]:
        return {'learn': self._learner, 'collect': self._actor, 'eval': self._evaluator}

    @property
    def limit(self) -> int | None:
        """Env steps at which the run ends."""
        return self._cfg.max_env_step

    def progress(self) -> float:
        """What part of the run is done, by its limit on env steps, updates or episodes; 0 where there is none."""
        limits = (
            (self._cfg.max_env_step, self._actor.total_step),
            (self._cfg.max_train_iter, self._learner.train_iter),
            (self._cfg.max_episode, self._actor.total_episode),
        )
        return min(1.0, max((done / limit for limit, done in limits if limit not in (None, -1)), default=0.0))

    def out_of_budget(self) -> bool:
        """Whether a limit on env steps, updates or episodes is reached."""
        return self.progress() == 1.0

    def state_dict(self) -> dict[str, Any]:
        """The newest settings, which the actor logs, and the opponents; all counters live in the workers."""
        state: dict[str, Any] = {'settings': {mode: dict(given) for mode, given in self.settings.items()}}
        return state if self.selfplay is None else {**state, 'selfplay': self.selfplay.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave, for the policy, too; in parallel mode the next tasks carry new ones."""
        for mode, given in state.get('settings', {}).items():
            worker = self._workers()[mode]
            if hasattr(worker, 'policy'):
                worker.policy.set_setting(mode, given)
                self.settings[mode] = given
        if self.selfplay is not None:
            self.selfplay.load_state_dict(state['selfplay'])
