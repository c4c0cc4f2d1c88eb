"""Configs of Atari games."""
