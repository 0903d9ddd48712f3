"""Grafana boards of a cluster, by Grafana's own library; `python -m tools.boards` writes them."""
