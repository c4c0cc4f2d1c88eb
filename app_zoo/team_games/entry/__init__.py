"""Configs of the small games of teams."""
