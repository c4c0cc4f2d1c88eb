"""DQN for traffic lights: one head a crossing."""

from nervex.policy.dqn import DQNPolicy
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import settings


@POLICY_REGISTRY.register('sumo_dqn')
class SumoDQNPolicy(DQNPolicy):
    """DQN with settings that suit decisions every five seconds; several crossings are the heads of one network."""

    config = settings(
        policy_type='sumo_dqn',
        model=dict(hidden_dim_list=[128, 128]),
        learn=dict(
            train_step=4,
            batch_size=64,
            learning_rate=5e-4,
            learning_rate_schedule='linear',
            init_data_count=1000,
            algo=dict(target_update_freq=500, discount_factor=0.97, huber=True),
        ),
        command=dict(eps=dict(type='linear', start=1.0, end=0.05, decay=10000), eps_by='envstep'),
    )
