"""Configs of matrix games."""
