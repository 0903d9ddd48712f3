"""A training run: settings, metrics, checkpoints, outcome, report."""
