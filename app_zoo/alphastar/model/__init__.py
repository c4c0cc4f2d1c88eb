"""AlphaStar's network in small."""

from app_zoo.alphastar.model.star_net import StarNet

__all__ = ['StarNet']
