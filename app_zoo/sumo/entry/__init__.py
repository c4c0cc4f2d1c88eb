"""Configs of traffic lights, and how they compare with rules."""
