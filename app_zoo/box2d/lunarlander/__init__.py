"""LunarLander."""
