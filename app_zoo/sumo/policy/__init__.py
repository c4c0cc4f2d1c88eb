"""Policies with the settings of traffic lights."""
