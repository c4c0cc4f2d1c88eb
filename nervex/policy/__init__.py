"""Algorithms. Names are imported when they are first used; ``nervex -q policy`` lists what configs may name."""

from nervex.policy.base_policy import Policy, create_policy, register_policy
from nervex.policy.batched import batched, is_batched
from nervex.utils import POLICY_REGISTRY
from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.policy.alphazero': 'AlphaZeroPolicy',
    'nervex.policy.common_policy': 'CommonPolicy',
    'nervex.policy.cql': 'ContinuousCQLPolicy CQLPolicy',
    'nervex.policy.crossq': 'CrossQPolicy',
    'nervex.policy.ddpg': 'DDPGPolicy TD3BCPolicy TD3Policy',
    'nervex.policy.dqn': 'DQNPolicy',
    'nervex.policy.dqn_vanilla': 'DQNVanillaPolicy',
    'nervex.policy.il': 'ILPolicy',
    'nervex.policy.impala': 'IMPALAPolicy',
    'nervex.policy.implicit_q': 'ImplicitQPolicy',
    'nervex.policy.ppg': 'PPGPolicy',
    'nervex.policy.ppo': 'A2CPolicy PPOPolicy RecurrentPPOPolicy',
    'nervex.policy.ppo_vanilla': 'PPOVanillaPolicy',
    'nervex.policy.qrdqn': 'QRDQNPolicy',
    'nervex.policy.r2d2': 'R2D2Policy',
    'nervex.policy.rainbow_dqn': 'RainbowDQNPolicy',
    'nervex.policy.sac': 'DiscreteSACPolicy DroQPolicy SACPolicy',
    'nervex.policy.sqn': 'SQNPolicy',
    'nervex.policy.tqc': 'TQCPolicy',
    'nervex.run.build': 'load_policy',
    'nervex.worker.actor.batch_style': 'BatchPolicy test_one_episode train_one_episode',
    'nervex.worker.actor.equivalence': 'check_batched',
}
__getattr__, __dir__, _LAZY = lazy_exports(__name__, _HOMES)
__all__ = ['POLICY_REGISTRY', 'Policy', 'batched', 'create_policy', 'is_batched', 'register_policy', *_LAZY]
