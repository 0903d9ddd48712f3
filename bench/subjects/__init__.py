"""Programs that benchmarks measure.

Imported by: bench.
"""
