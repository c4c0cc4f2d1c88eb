"""Atari games."""
