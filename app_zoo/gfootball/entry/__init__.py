"""Configs of football, and scripted players."""
