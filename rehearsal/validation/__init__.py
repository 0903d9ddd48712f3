"""`make validate`: what our flags allow, against what the real ParallelCluster library allows.

Imported by: bench, rehearsal.__main__, rehearsal.recording.
"""
