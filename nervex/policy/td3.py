"""Twin delayed DDPG."""

from __future__ import annotations

from nervex.policy.ddpg import DDPGPolicy
from nervex.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register('td3')
class TD3Policy(DDPGPolicy):
    """
    Overview:
        DDPG against overestimation: the smaller of two critics makes the target, the target's action is smoothed by
        clipped noise, and the actor moves half as often. Paper: Fujimoto et al. 2018.
    """

    config = dict(
        policy_type='td3',
        model=dict(use_twin_critic=True),
        learn=dict(algo=dict(actor_update_freq=2, target_noise_sigma=0.2, target_noise_clip=0.5)),
    )
