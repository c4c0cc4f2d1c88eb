"""Goals for simulated robots, with rewards for reaching them only."""
