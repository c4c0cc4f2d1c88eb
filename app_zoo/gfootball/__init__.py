"""Football by Google Research Football."""
