"""The programs that benchmarks measure.

Imported by: bench.
"""
