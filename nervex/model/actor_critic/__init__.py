"""Networks with a policy and a value."""

from nervex.model.actor_critic.value_ac import (
    ConvRValueAC,
    ConvValueAC,
    FCRValueAC,
    FCValueAC,
    RecurrentValueAC,
    ValueAC,
)

__all__ = ['ConvRValueAC', 'ConvValueAC', 'FCRValueAC', 'FCValueAC', 'RecurrentValueAC', 'ValueAC']
