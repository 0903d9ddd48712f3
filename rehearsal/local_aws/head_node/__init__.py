"""A cluster's head node: its signals, Systems Manager's agent and Run Command."""
