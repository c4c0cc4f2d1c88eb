"""Parts of a run that a user registers from outside: actor, learner, commander, kind of buffer, env manager, hook."""

from nervex.data.replay import ReplayKind
from nervex.utils import (
    ACTOR_REGISTRY,
    BUFFER_REGISTRY,
    COMMANDER_REGISTRY,
    ENV_MANAGER_REGISTRY,
    LEARNER_HOOK_REGISTRY,
    LEARNER_REGISTRY,
)
from nervex.worker.actor import BaseSerialActor
from nervex.worker.actor.env_manager import BaseEnvManager
from nervex.worker.coordinator import BaseSerialCommander
from nervex.worker.learner import BaseLearner, LearnerHook

CALLS = {}


def count(name):
    CALLS[name] = CALLS.get(name, 0) + 1


@ACTOR_REGISTRY.register('own_actor')
class OwnActor(BaseSerialActor):
    def generate_data(self, *args, **kwargs):
        count('actor')
        return super().generate_data(*args, **kwargs)


@LEARNER_REGISTRY.register('own_learner')
class OwnLearner(BaseLearner):
    def train(self, data, envstep=0):
        count('learner')
        return super().train(data, envstep)


@COMMANDER_REGISTRY.register('own_commander')
class OwnCommander(BaseSerialCommander):
    config = dict(patience=3)  # (int) rounds after which the run ends

    def out_of_budget(self):
        count('commander')
        return CALLS['commander'] > self._cfg.patience


@BUFFER_REGISTRY.register('own_buffer')
class OwnBuffer(ReplayKind):
    def push(self, columns):
        count('buffer')
        super().push(columns)


@ENV_MANAGER_REGISTRY.register('own_manager')
class OwnManager(BaseEnvManager):
    def advance(self, ids, actions):
        count('manager')
        return super().advance(ids, actions)


@LEARNER_HOOK_REGISTRY.register('own_hook')
class OwnHook(LearnerHook):
    def __call__(self, learner):
        count(f'hook {self.ext_args["word"]}')
