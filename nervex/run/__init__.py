"""One run: ``launch`` (what is to run), ``build`` (the wiring), folder, saved state, stop signals, progress, result."""
