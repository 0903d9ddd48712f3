"""Overrides of the cluster config from a file of the user's."""
