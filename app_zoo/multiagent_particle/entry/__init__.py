"""Configs of the particle worlds."""
