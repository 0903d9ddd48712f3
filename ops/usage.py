"""Errors that end a command with one message and an exit code."""

from training_cluster.problems import ConfigurationError


class OpsError(ConfigurationError):
    """Something in the account, on the cluster or on this machine prevents the command: exit code 1."""


class UsageError(ConfigurationError):
    """An argument of the command is wrong: exit code 2. The message is complete."""
