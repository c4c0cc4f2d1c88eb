"""Small exact games of a team."""
