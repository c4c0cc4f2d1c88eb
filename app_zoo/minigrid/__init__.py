"""Rooms and doors of MiniGrid."""
