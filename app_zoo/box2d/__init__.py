"""Environments of Gymnasium's Box2D family."""
