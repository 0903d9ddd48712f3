"""Generators of the pages in docs/."""
