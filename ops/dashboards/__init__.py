"""Figures of a cluster's Prometheus, live in a terminal, and boards for Grafana."""
