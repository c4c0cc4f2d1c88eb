"""Configs of slime volleyball."""
