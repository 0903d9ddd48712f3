"""`trainctl price`: what a cluster costs idle, with all nodes running, and for each token."""
