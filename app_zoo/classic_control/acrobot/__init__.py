"""Acrobot."""
