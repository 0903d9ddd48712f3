"""The package that all trainers share; it needs the standard library, and torch in a few places."""
