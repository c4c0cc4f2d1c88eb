"""Temporal-difference errors, and the returns that they aim at; offered by ``nervex.rl_utils``."""
