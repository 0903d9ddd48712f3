"""`trainctl import`: flags, queues and overrides from a cluster config that others wrote."""
