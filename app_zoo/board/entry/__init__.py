"""Configs of board games."""
