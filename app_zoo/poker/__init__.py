"""Kuhn and Leduc poker, for two."""
