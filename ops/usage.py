"""What keeps a command from its work: one message each, and an exit code."""

from __future__ import annotations

from training_cluster.problems import ConfigurationError


class OpsError(ConfigurationError):
    """Something in the account, on the cluster or on this machine is not as it must be: exit code 1."""


class UsageError(ConfigurationError):
    """An argument of the command itself is wrong: exit code 2. The message is complete."""
