"""Generators of the pages in docs/, and of the table of reserved keys.

`python -m tools.docs` writes all of them.
"""
