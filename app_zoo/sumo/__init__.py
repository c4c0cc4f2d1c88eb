"""Traffic lights by SUMO."""
