"""Faults of AWS, head nodes and Lambda functions; no resource of the app may be stranded or lost.

Imported by: rehearsal.__main__.
"""
