"""Matrix games of two sides."""
