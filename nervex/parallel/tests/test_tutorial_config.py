"""The config of the tutorial, with sections for the coordinator, the learner and each actor, trains as it is."""

from app_zoo.classic_control.cartpole.entry import cartpole_dqn_default_config
from app_zoo.classic_control.cartpole.entry.parallel import cartpole_dqn_config
from nervex.config import compile_config
from nervex.entry.parallel_entry import parallel_pipeline

PATH = 'app_zoo/classic_control/cartpole/entry/parallel/cartpole_dqn_config.py'


def test_it_is_the_serial_config_on_two_actors():
    older, serial = compile_config(cartpole_dqn_config), compile_config(cartpole_dqn_default_config)
    assert (older.parallel.actor_num, older.parallel.envs_per_actor, older.parallel.learner_num) == (2, 4, 1)
    assert older.evaluator == serial.evaluator and older.replay_buffer == serial.replay_buffer
    assert older.policy.model == serial.policy.model and older.policy.command == serial.policy.command
    updates = [cfg.policy.learn.train_step / cfg.actor.n_sample for cfg in (older, serial)]
    assert updates == [0.5, 0.5], 'a sample'


def test_it_is_solved(tmp_path):
    result = parallel_pipeline(PATH, 2, overrides=('parallel.carrier=inline', f'exp_name={tmp_path}'))
    assert result.solved and result.env_steps < 20_000
