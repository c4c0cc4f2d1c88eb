"""Cars on the roads of highway-env."""
