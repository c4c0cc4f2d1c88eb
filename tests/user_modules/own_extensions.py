"""What docs/en/extend.md says may be added from outside: one of each."""

import numpy as np
import torch

from nervex.data.replay import ReplayKind
from nervex.run.events import EventSink
from nervex.utils import (
    BUFFER_REGISTRY,
    ENV_MANAGER_REGISTRY,
    EVENT_REGISTRY,
    HEAD_REGISTRY,
    LEARNER_REGISTRY,
)
from nervex.utils.declare import setting, settings
from nervex.worker import BaseLearner
from nervex.worker.actor.env_manager import EnvManager
from nervex.worker.actor.env_manager.backend import InProcess

LAUNCHED, LOGGED, COMMANDS, REWARDS = [], [], [], set()


class Told(InProcess):
    def launch(self, g, setup):
        LAUNCHED.append(list(self.groups[g]))
        super().launch(g, setup)


@ENV_MANAGER_REGISTRY.register('told')
class ToldEnvManager(EnvManager):
    backend = Told


@BUFFER_REGISTRY.register('doubling')
class DoublingBuffer(ReplayKind):
    def push(self, columns):
        super().push({**columns, 'reward': np.float32(2) * columns['reward']})


@HEAD_REGISTRY.register('bounded')
class BoundedHead(torch.nn.Module):
    def __init__(self, hidden_dim, action_dim, bound=1.0, **others):
        super().__init__()
        self.bound, self.q = bound, torch.nn.Linear(hidden_dim, action_dim)

    def forward(self, x):
        return {'logit': self.bound * torch.tanh(self.q(x))}


@EVENT_REGISTRY.register('remember')
class Remember(EventSink):
    config = settings(most=setting(1000, 'int >= 1', 'values that are remembered'))

    def on_log(self, values, env_step, train_iter):
        LOGGED.extend([(name, value, env_step) for name, value in values.items()][: self.cfg['most']])


class Updates:
    count = 0

    def state_dict(self):
        return {'count': self.count}

    def load_state_dict(self, state):
        self.count = state['count']


@LEARNER_REGISTRY.register('counting')
class CountingLearner(BaseLearner):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.updates = Updates()
        self.attach('updates', self.updates)

    def train(self, data, envstep=0):
        self.updates.count += 1
        REWARDS.update(np.unique(data['reward']).tolist())
        return super().train(data, envstep)


def command(options):
    COMMANDS.append(options)
