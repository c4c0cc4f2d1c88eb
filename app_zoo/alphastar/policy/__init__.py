"""AlphaStar's losses and policy."""

from app_zoo.alphastar.policy.loss import alphastar_data, alphastar_error, alphastar_loss
from app_zoo.alphastar.policy.star_policy import AlphaStarPolicy

__all__ = ['AlphaStarPolicy', 'alphastar_data', 'alphastar_error', 'alphastar_loss']
