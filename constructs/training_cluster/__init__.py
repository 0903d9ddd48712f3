"""Training Cluster: the settings, the catalog and the constructs that the stacks wire together."""
