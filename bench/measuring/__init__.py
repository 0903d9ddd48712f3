"""Measuring: time, memory, machine, results and pages."""
