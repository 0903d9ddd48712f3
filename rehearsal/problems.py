"""The error that ends a rehearsal with one clear message."""


class RehearsalError(Exception):
    """A step failed or an option is wrong. The message names the place, the problem and its remedy."""
