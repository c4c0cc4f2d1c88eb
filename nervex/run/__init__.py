"""One run: its wiring (``build``), folder, saved state, stop signals, progress and result. Below entry and parallel."""
