"""Faults of AWS, head nodes and Lambda functions; nothing of ours may be stranded or lost.

Imported by: rehearsal.__main__.
"""
