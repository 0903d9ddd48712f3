"""`make validate`: our flags' rules, compared with those of the real ParallelCluster library.

Imported by: rehearsal.__main__.
"""
