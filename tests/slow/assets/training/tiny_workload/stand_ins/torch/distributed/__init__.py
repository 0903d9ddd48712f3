"""Stands in for torch, of which the tests' own workload needs torchrun alone."""
