"""Actors with old weights: what V-trace corrects, and what happens without it."""

import pytest

from nervex.entry.parallel_entry import parallel_pipeline
from nervex.policy.impala import IMPALAPolicy, _log_prob_and_entropy
from nervex.policy.sequences import map_tensors

LAG = ('parallel.carrier=inline', 'parallel.actor_num=2', 'parallel.block.rows=8', 'parallel.publish_iters=16',
       'parallel.max_lead=null', 'parallel.save_s=1000', 'evaluator.eval_freq=200')  # fmt: skip


class Uncorrected(IMPALAPolicy):
    """Plain actor-critic: takes every action for one of the present policy."""

    config = {}

    def _loss(self, data):
        output = self._unrolled(data)
        now = map_tensors(
            {'logit': output['logit'], 'mask': output.get('action_mask')}, lambda x: x[: len(data['mask'])]
        )
        log_pi, _ = _log_prob_and_entropy(now['logit'], now['mask'], data['action'])
        return super()._loss({**data, 'log_prob': log_pi.detach()})


@pytest.mark.slow
@pytest.mark.parametrize('seed', [0, 1, 2])
def test_v_trace_learns_at_a_lag_at_which_plain_actor_critic_fails(tmp_path, seed):
    corrected = parallel_pipeline(
        'cartpole_impala', seed, overrides=(*LAG, f'exp_name={tmp_path}/corrected', 'commander.max_env_step=100000')
    )
    plain = parallel_pipeline(
        'cartpole_impala',
        seed,
        policy_fn=Uncorrected,
        overrides=(*LAG, f'exp_name={tmp_path}/plain', 'commander.max_env_step=50000'),
    )
    assert corrected.solved
    assert not plain.solved and plain.final_return < 100
