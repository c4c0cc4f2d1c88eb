"""Classes with declarations, registered for the time of a test: no real env, policy or worker is imported."""

import pytest

from nervex.config import sections
from nervex.parallel.settings import ParallelSettings
from nervex.policy.base_policy import Policy
from nervex.utils import ENV_MANAGER_REGISTRY, ENV_REGISTRY, LEARNER_HOOK_REGISTRY, MODEL_REGISTRY, POLICY_REGISTRY
from nervex.utils.declare import setting, settings
from nervex.worker.learner.learner_hook import HOOKS, LearnerHook


class FakeEnv:
    config = dict(frame_stack=4, norm_obs=dict(use_norm=False))


class FakeManager:
    config = settings(
        step_timeout=setting(60.0, 'number > 0', ''),
        shared_memory=setting(True, 'bool', ''),
        context=setting('fork', "'fork' | 'spawn'", ''),
    )


class Framework:
    """What the framework declares for every policy."""

    config = Policy.config


class FakePolicyBase(Framework):
    """As the framework's base classes: what most policies have."""

    config = dict(
        learn=dict(train_step=1, batch_size=64, learning_rate=1e-3, weight_decay=0.0, init_data_count=0, algo={}),
        collect=dict(traj_len=None, unroll_len=1, algo={}),
    )


class FakePolicy(FakePolicyBase):
    config = settings(
        policy_type='fake',
        learn=dict(
            train_step=3,
            target_theta=setting(0.5, 'number in [0, 1]', ''),
            algo=dict(target_update_freq=100, discount_factor=0.97, nstep=1),
        ),
        collect=dict(algo=dict(nstep=1)),
        command=dict(
            eps=dict(
                type=setting('exp', "'exp' | 'linear'", ''),
                start=setting(0.95, 'number in [0, 1]', ''),
                end=setting(0.1, 'number in [0, 1]', ''),
                decay=setting(10000, 'number > 0', ''),
            )
        ),
    )

    def default_model(self):
        return 'fake_net', []


class FakeNet:
    def __init__(self, obs_dim, action_dim, embedding_dim: int = 64, hidden_dim_list=None, dueling: bool = True):
        self.args = obs_dim, action_dim, embedding_dim, hidden_dim_list, dueling


class BufferManager:
    config = settings(
        type=setting(None, "'replay' | 'on_policy' | None", ''),
        meta_maxlen=setting(4096, 'int > 0', ''),
        replay_start_size=setting(0, 'int >= 0', ''),
        max_reuse=setting(float('inf'), 'int > 0 | inf', ''),
        alpha=setting(0.6, 'number >= 0', ''),
        monitor=dict(log_freq=setting(2000, 'int >= 1', '')),
    )


class BaseSerialActor:
    config = settings(
        n_sample=setting(None, 'int >= 1 | None', ''),
        n_episode=setting(None, 'int >= 1 | None', ''),
        traj_len=setting(None, 'int >= 1 | inf | None', '', same_as='policy.collect.traj_len'),
        traj_print_freq=setting(100, 'int >= 0', ''),
        collect_print_freq=setting(100, 'int >= 0', ''),
    )


class BaseSerialEvaluator:
    config = settings(
        n_episode=setting(5, 'int >= 1', ''),
        eval_freq=setting(50, 'int >= 1', ''),
        stop_val=setting(None, 'number | None', ''),
    )


class BaseLearner:
    config = settings(
        load_path=setting('', 'str', ''),
        import_names=setting(None, 'any', ''),
        hook=setting(
            dict(log_show=dict(type='log_show', position='after_iter', priority=20, ext_args=dict(freq=100))), HOOKS, ''
        ),
    )


class BaseSerialCommander:
    config = dict(max_env_step=10_000_000)


_WORKERS = (BufferManager, BaseSerialActor, BaseSerialEvaluator, BaseLearner, BaseSerialCommander, ParallelSettings)
WORKERS = {cls.__name__: cls for cls in _WORKERS}


@pytest.fixture
def fakes(monkeypatch):
    """Register the fakes; answers the list of registries, so that a test can register more for its own time."""
    registries = {
        ENV_REGISTRY: {'fake': FakeEnv},
        ENV_MANAGER_REGISTRY: {'base': FakeManager},
        POLICY_REGISTRY: {'fake': FakePolicy},
        MODEL_REGISTRY: {'fake_net': FakeNet},
        LEARNER_HOOK_REGISTRY: dict.fromkeys(('load_ckpt', 'log_show', 'save_ckpt'), LearnerHook),
    }
    for registry, entries in registries.items():
        monkeypatch.setattr(registry, '_entries', {**registry._entries, **entries})
    monkeypatch.setattr(sections, 'load_attribute', lambda path: WORKERS[path.partition(':')[2]])
    return dict(FakePolicyBase=FakePolicyBase, FakePolicy=FakePolicy, FakeNet=FakeNet, FakeEnv=FakeEnv)


@pytest.fixture
def config(fakes):
    """A small config that is right."""
    return dict(
        env=dict(env_type='fake', actor_env_num=8, evaluator_env_num=5),
        policy=dict(policy_type='fake', model=dict(dueling=True), learn=dict(batch_size=32)),
        replay_buffer=dict(agent=dict(meta_maxlen=1000)),
        actor=dict(n_sample=8),
        evaluator=dict(stop_val=195),
    )
