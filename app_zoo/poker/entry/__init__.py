"""Configs of poker, and how much what was learned can be exploited."""
