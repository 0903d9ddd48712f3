"""`trainctl status`: the progress of a deploy, and the state of a cluster."""
