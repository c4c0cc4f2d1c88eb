"""Diagrams of nerveX, drawn from its source: ``python -m nervex.design FOLDER``."""
