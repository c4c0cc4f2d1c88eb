"""Bodies simulated by MuJoCo."""
