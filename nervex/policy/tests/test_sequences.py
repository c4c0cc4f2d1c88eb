"""How steps are cut into sequences, and how recurrent states become columns."""

import numpy as np
import pytest
import torch

from nervex.data import Batch
from nervex.policy.sequences import cut_sequences, pack_states, state_before_first, unpack_states


def block(done, first=0):
    """Steps of one env: obs t, next_obs t + 0.5, prev_state 100 + t."""
    t = np.arange(first, first + len(done))
    return Batch.of(
        dict(
            obs=t.astype(np.float32),
            next_obs=(t + 0.5).astype(np.float32),
            action=10 + t,
            done=np.array(done, bool),
            prev_state=Batch.of({'0': (100 + t)[:, None]}),
        )
    )


def test_sequences_end_with_the_episode_and_are_padded():
    samples = cut_sequences(block([0, 0, 0, 1, 0]), length=3)
    # one episode 0 1 2 | 3, then the next begins with 4; behind the last step stands its own next_obs
    assert samples['obs'].tolist() == [[0, 1, 2, 2.5], [3, 3.5, 3.5, 3.5], [4, 4.5, 4.5, 4.5]]
    assert samples['mask'].tolist() == [[True] * 3, [True, False, False], [True, False, False]]
    assert samples['done'].tolist() == [[False] * 3, [True] * 3, [False, True, True]]
    assert samples['action'][:, 0].tolist() == [10, 13, 14]
    assert samples['prev_state']['0'][:, 0].tolist() == [100, 103, 104]


def test_context_is_taken_from_the_same_episode_or_the_sequence_is_fresh():
    samples = cut_sequences(block([0, 0, 0, 1, 0, 0, 0]), length=2, context=2, repeated=2)
    assert samples['obs'][:, 2:].tolist() == [[2, 3, 3.5], [4, 5, 5.5], [6, 6.5, 6.5]]
    assert samples['fresh'].tolist() == [False, True, False]
    assert samples['obs'][0, :2].tolist() == [0, 1] and samples['obs'][2, :2].tolist() == [4, 5]
    assert samples['prev_state']['0'][:, 0].tolist() == [100, 104, 104]  # of the first step of the context, if any


def test_every_step_is_learned_exactly_once_over_overlapping_blocks():
    rng = np.random.default_rng(0)
    done = rng.random(200) < 0.15
    seen = []
    context, steps = 3, 10
    for head in range(0, 190, steps):
        samples = cut_sequences(block(done[head : head + steps + context], head), 4, context, context)
        for row in range(len(samples)):
            valid = samples['mask'][row]
            seen += (samples['action'][row][valid] - 10).tolist()
            inside = samples['action'][row][valid] - 10
            assert not done[inside[:-1]].any()  # an episode's end can only be the last step
            if not samples['fresh'][row]:
                assert samples['obs'][row][:context].tolist() == list(range(inside[0] - context, inside[0]))
                assert not done[inside[0] - context : inside[0]].any()
    assert sorted(seen) == list(range(context, 190 + context))


def test_several_envs_are_cut_like_each_alone():
    rng = np.random.default_rng(1)
    blocks = [block(rng.random(23) < 0.2, 100 * env) for env in range(3)]
    stacked = Batch.of(
        {k: np.stack([b[k] for b in blocks], 1) for k in ('obs', 'next_obs', 'action', 'done')}
        | {'prev_state': Batch.of({'0': np.stack([b['prev_state']['0'] for b in blocks], 1)})}
    )
    together = cut_sequences(stacked, 5, 2, 2)
    assert together == Batch.cat([cut_sequences(b, 5, 2, 2) for b in blocks])


@pytest.mark.parametrize(
    'state', [torch.ones(2, 1, 3), (torch.ones(2, 1, 3), torch.zeros(4)), {'h': torch.ones(2), 'c': torch.zeros(3)}]
)
def test_states_go_into_columns_and_back(state):
    packed = pack_states([state] * 5)
    rows = unpack_states(packed)
    assert len(rows) == 5 and type(rows[0]) is type(state)
    alone = pack_states(state)
    pairs = [(packed, alone)] if isinstance(alone, torch.Tensor) else [(packed[k], alone[k]) for k in alone]
    assert all(torch.equal(column[0], value) for column, value in pairs)


def test_the_state_before_the_first_step_of_a_model_that_does_not_tell_it():
    def model(data):
        return {'next_state': [(torch.ones(1, 2), torch.ones(3))] * len(data['obs'])}

    state = state_before_first(model, {'obs': torch.ones(4, 1)})
    assert [s.tolist() for s in state] == [[[0, 0]], [0, 0, 0]]
