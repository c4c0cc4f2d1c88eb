"""Payoffs by the name that the documents use."""

from nervex.league.shared_payoff import (
    BattleRecordDict,
    BattleSharedPayoff,
    SoloPayoff,
    SoloSharedPayoff,
    create_payoff,
)

__all__ = ['BattleRecordDict', 'BattleSharedPayoff', 'SoloPayoff', 'SoloSharedPayoff', 'create_payoff']
