"""Measuring: time, memory, machine, results and pages.

Imported by: bench.
"""
