"""Configs of the micro-battle."""
