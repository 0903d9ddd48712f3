"""A training run as text, as one HTML page and as a picture: `trainctl report`.

Imported by: ops.commands.
"""
