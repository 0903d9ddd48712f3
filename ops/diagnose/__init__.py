"""Matches the logs of a failure with known causes, and ranks these, each with its evidence and its remedy."""
