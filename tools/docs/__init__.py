"""Generators of the pages in docs/.

Imported by: nobody; run by name.
"""
