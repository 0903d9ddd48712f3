"""Metrics of a rehearsal: a real Prometheus, and a real node_exporter for each node of the local Slurm."""
