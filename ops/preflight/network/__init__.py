"""Checks of an existing network."""
