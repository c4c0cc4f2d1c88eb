"""Slime volleyball as a game of two sides."""

from app_zoo.slime_volley.envs.slime_volley import SlimeVolley

__all__ = ['SlimeVolley']
