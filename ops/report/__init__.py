"""`trainctl report`: training runs as text and as an HTML page."""
