"""Every config that is shipped: short, complete, and it runs."""

from pathlib import Path

import pytest

from nervex.config import read_config
from nervex.config.config import builtin_configs
from nervex.entry import serial_pipeline
from nervex.utils import ConfigError

CONFIGS = builtin_configs()
FEW = (
    'env.actor_env_num=2',
    'env.evaluator_env_num=1',
    'evaluator.n_episode=1',
    'evaluator.eval_freq=100000',
)


@pytest.mark.parametrize('name', CONFIGS)
def test_a_config_is_short_and_has_a_name_of_its_own(name):
    text = Path(CONFIGS[name]).read_text(encoding='utf-8')
    assert text.count('\n') <= 45
    assert f'{name}_default_config' in text and 'main_config = ' in text and text.startswith('"""')


@pytest.mark.parametrize('name', CONFIGS)
def test_a_config_runs_for_a_few_updates(name):
    cfg = read_config(CONFIGS[name])
    few = [*FEW, 'commander.max_train_iter=3']
    if 'init_data_count' in cfg.policy.learn:
        batch = cfg.policy.learn.batch_size if 'batch_size' in cfg.policy.learn else 64
        few.append(f'policy.learn.init_data_count={batch}')
    if 'simulations' in cfg.policy.get('eval', {}):  # of a search, in evaluations more than while it collects
        few.append('policy.eval.simulations=16')
    try:
        result = serial_pipeline(name, seed=0, overrides=tuple(few))
    except ConfigError as error:
        if 'pip install' not in str(error):
            raise
        pytest.skip(str(error))
    assert result.train_iters >= 3 and result.env_steps > 0
