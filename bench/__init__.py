"""Benchmarks: figures for people, never tests. One row each: | name | goal | measured | met or missed |."""
