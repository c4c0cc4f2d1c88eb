"""A policy for CounterEnvs, and the check that rows of theirs belong together."""

import numpy as np

from nervex.policy import batched
from nervex.policy.modes import CollectMode, EvalMode
from nervex.rl_utils import flatten_time


def nothing(*args, **kwargs):
    return None


class Hooks:
    """A policy in columns whose action is step % 2, so that a mixed-up row is seen."""

    def __init__(self):
        self.resets = []

    @batched
    def preprocess(self, block):
        return block.env_id, {'obs': block.obs}

    def forward(self, data_id, data):
        return {'action': (data['obs'][:, 2] % 2).long()}

    @batched
    def postprocess(self, data_id, output):
        return output

    @batched
    def transition(self, obs, output, timestep):
        return {
            'obs': obs,
            'next_obs': timestep.obs,
            'action': output['action'],
            'reward': timestep.reward,
            'done': timestep.done,
        }

    @batched
    def sample(self, traj):
        return traj if traj['done'].ndim == 1 else flatten_time(traj)

    def reset(self, data_id=None):
        self.resets.append(data_id)

    def collect_mode(self, **other):
        hooks = dict(
            data_preprocess=self.preprocess,
            forward=self.forward,
            data_postprocess=self.postprocess,
            process_transition=self.transition,
            get_train_sample=self.sample,
            reset=self.reset,
            get_attribute=nothing,
            set_setting=nothing,
            state_dict=dict,
            load_state_dict=nothing,
        )
        return CollectMode(**{**hooks, **other})

    def eval_mode(self):
        hooks = (self.forward, self.reset, self.preprocess, nothing, nothing, dict, nothing, self.postprocess)
        return EvalMode(*hooks)


def check_rows(batch):
    """Every row fits together; answers (env, episode, step) of each."""
    obs, next_obs, done = (np.asarray(batch[k]) for k in ('obs', 'next_obs', 'done'))
    action, reward = np.asarray(batch['action']), np.asarray(batch['reward']).reshape(-1)
    assert (obs[:, :2] == next_obs[:, :2]).all()  # same env, same episode, also behind a last step
    assert (next_obs[:, 2] == obs[:, 2] + 1).all()
    assert (action == obs[:, 2] % 2).all() and (next_obs[:, 3] == action).all()
    assert (reward == next_obs[:, 2]).all()
    return [tuple(row) for row in next_obs[:, :3].astype(int).tolist()], done
