"""`make validate`: our flags' rules, compared with those of the real ParallelCluster library.

Imported by: bench, rehearsal.__main__, rehearsal.recording.
"""
