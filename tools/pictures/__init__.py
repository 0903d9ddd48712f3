"""Generators of the pictures in docs/pictures/.

Imported by: nobody; run by name.
"""
