"""From a config to env classes: registration, import_names, and what is said of mistakes."""

import sys

import numpy as np
import pytest

from nervex.envs import BaseEnv, env_mapping, get_env_cls, get_vec_env_setting, register_env
from nervex.envs.common import EnvElement, EnvElementInfo, EnvElementRunner, encoders
from nervex.envs.env.base_env import BaseEnvInfo
from nervex.envs.tests.fakes import CounterEnv, TimeLimitEnv


def test_register_and_get():
    register_env('counter_for_this_test', CounterEnv)
    assert get_env_cls({'env_type': 'counter_for_this_test'}) is CounterEnv
    assert env_mapping.get('counter_for_this_test') is CounterEnv


def test_class_or_function_in_the_config():
    assert get_env_cls({'env_type': CounterEnv}) is CounterEnv

    def make(cfg):
        return CounterEnv(cfg)

    env_fn, actors, evaluators = get_vec_env_setting({'env_type': make, 'actor_env_num': 2, 'length': 3})
    assert env_fn is make and len(actors) == 2 and len(evaluators) == 1 and actors[0]['length'] == 3


def test_import_names_register(tmp_path, monkeypatch):
    (tmp_path / 'my_env_module.py').write_text(
        'from nervex.envs import register_env\nfrom nervex.envs.tests.fakes import CounterEnv\n'
        'register_env("mine_by_import", CounterEnv)\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    cfg = {'env_type': 'mine_by_import', 'import_names': ['my_env_module']}
    assert get_env_cls(cfg) is CounterEnv and 'import_names' in cfg
    sys.modules.pop('my_env_module')


@pytest.mark.parametrize(
    'cfg,error,match',
    [
        ({'env_type': 'cartpol'}, KeyError, "invalid env type.*did you mean 'cartpole'"),
        ({}, KeyError, 'invalid env type'),
        ({'env_type': 'x', 'import_names': 'abc'}, TypeError, 'import_names'),
        ({'env_type': 'cartpole', 'actor_env_num': 0}, ValueError, 'actor_env_num'),
        ({'env_type': 'cartpole', 'evaluator_env_num': 1.5}, ValueError, 'evaluator_env_num'),
    ],
)
def test_mistakes(cfg, error, match):
    with pytest.raises(error, match=match):
        get_vec_env_setting(cfg)


def test_settings_are_copies():
    cfg = {'env_type': 'cartpole', 'actor_env_num': 2, 'deep': {'a': [1]}}
    _, actors, _ = get_vec_env_setting(cfg)
    actors[0]['deep']['a'].append(2)
    assert cfg['deep']['a'] == [1] and actors[1]['deep']['a'] == [1]


def test_defaults_are_merged_over_the_bases():
    class Wide(CounterEnv):
        config = dict(length=9, deep=dict(a=1, b=2))

    class Wider(Wide):
        config = dict(deep=dict(b=3))

    cfg = {'deep': {'c': 4}}
    env = Wider(cfg)
    assert env._cfg.length == 9 and dict(env._cfg.deep) == {'a': 1, 'b': 3, 'c': 4} and cfg == {'deep': {'c': 4}}
    assert env._cfg.tag == 0 and TimeLimitEnv()._cfg.truncate is True and CounterEnv.config['truncate'] is False


def test_base_env_needs_its_four_methods():
    with pytest.raises(TypeError, match='abstract'):
        BaseEnv()


def test_info_tuples_have_their_fields():
    info = BaseEnvInfo(1, EnvElementInfo((2,), {'min': 0}), None, None)
    assert info.use_wrappers is None and info.obs_space.to_agent_processor is None


def test_elements_and_runners():
    class Health(EnvElement):
        @property
        def info(self):
            return EnvElementInfo((1,), {'min': 0, 'max': 1})

    class HealthRunner(EnvElementRunner):
        def get(self, engine):
            return engine['health'] / 100

    runner = HealthRunner(Health())
    assert runner.get({'health': 50}) == 0.5 and runner.info.shape == (1,) and 'Health' in repr(Health())


def test_encoders():
    assert encoders.one_hot([0, 2], 3).tolist() == [[1, 0, 0], [0, 0, 1]]
    with pytest.raises(ValueError, match=r'\[0, 2\]'):
        encoders.one_hot(3, 3)
    assert encoders.one_hot(7, 3, clip=True).tolist() == [0, 0, 1]
    assert encoders.sqrt_one_hot(8, 16).tolist() == [0, 0, 1, 0, 0]  # floor(sqrt(8)) = 2 of 0..4
    assert encoders.div_one_hot(7, 9, 3).tolist() == [0, 0, 1, 0]  # 7 // 3 = 2 of 0..3
    assert encoders.binary_encode(5, 4).tolist() == [0, 1, 0, 1] and encoders.binary_encode(99, 3).tolist() == [1, 1, 1]
    assert encoders.batch_encode([1, 0], encoders.one_hot, num=2).tolist() == [0, 1, 1, 0]
    assert encoders.batch_encode([], encoders.one_hot, num=2).shape == (0,)
    assert encoders.one_hot(np.zeros((2, 3), np.int64), 4).shape == (2, 3, 4)
