"""Slime volleyball, one against one."""
