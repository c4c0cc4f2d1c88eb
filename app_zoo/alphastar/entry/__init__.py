"""Configs of StarCraft II in the manner of AlphaStar."""
