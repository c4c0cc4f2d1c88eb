"""Observations and rewards that are scaled by running statistics: those of all actors, everywhere."""

import numpy as np

from nervex.entry.eval_entry import eval as evaluate
from nervex.entry.parallel_entry import parallel_pipeline
from nervex.parallel.tests.running import build_parallel
from nervex.worker.learner.checkpoints import load_checkpoint_file

CONFIG = dict(
    env=dict(env_type='cartpole', import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
             actor_env_num=4, evaluator_env_num=1, manager=dict(norm_obs=True, norm_reward=True)),
    policy=dict(policy_type='ppo', model=dict(hidden_dim_list=[8]), learn=dict(batch_size=16)),
    actor=dict(n_sample=64),
    evaluator=dict(n_episode=1, eval_freq=10),
    commander=dict(max_env_step=600),
    parallel=dict(carrier='inline', actor_num=2),
)  # fmt: skip


def test_all_roles_scale_by_what_all_actors_saw(tmp_path):
    with build_parallel({**CONFIG, 'exp_name': str(tmp_path)}, 0) as run:
        run.begin()
        while run.going_on():
            run.coordinator.step(0.1)
        roles = {slot.name: slot.handle.host._role for slot in run.roster.slots}
        known = roles['learner0'].scaling
        count = known._stats[0].count
        # every observation once: one a step and one a beginning
        steps = run.tally.total_step - sum(header.steps for header, _ in run.pace.waiting)
        assert steps <= count <= steps + run.tally.total_episode + 4 and known._spread.count == steps
        for name in ('actor0', 'actor1'):
            own = roles[name].actor.env.normalizer._stats[0]
            assert count / 2 < own.count <= run.tally.total_step + run.tally.total_episode + 4, name
            assert np.allclose(own.mean, known._stats[0].mean, atol=0.3)
        evaluating = roles['evaluator0'].evaluator.env.normalizer
        assert evaluating.frozen and 0 < evaluating._stats[0].count <= count and not evaluating.norm_reward
        result = run.finish()
    saved = load_checkpoint_file(result.checkpoint)['attached']['normalizer']
    assert saved['obs'][0]['count'] >= count


def test_a_checkpoint_is_evaluated_and_a_run_resumed_with_the_statistics(tmp_path):
    cfg = {**CONFIG, 'exp_name': str(tmp_path)}
    first = parallel_pipeline(cfg, 0, overrides=('parallel.save_s=1e-6', 'learner.resume.max_cost=null'))
    assert evaluate(cfg, 0, load_path=first.checkpoint, n_episode=1).mean > 0
    with build_parallel(None, None, resume=str(tmp_path), overrides=('commander.max_env_step=900',)) as run:
        run.begin()
        while not run.tally.run_steps:
            run.coordinator.step(0.1)
        actor = run.roster.of('actor')[0].handle.host._role
        assert actor.actor.env.normalizer._stats[0].count > first.env_steps / 2, 'it begins with what was known'
