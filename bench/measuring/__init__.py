"""How benchmarks measure: time, memory, machine, results and pages.

Imported by: bench.
"""
