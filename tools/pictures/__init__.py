"""Generators of the pictures in docs/pictures/."""
