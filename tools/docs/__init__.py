"""Generators of the pages in docs/, and of the table of reserved keys.

Imported by: nobody; run by name.
"""
