"""One file a deployable stack: wiring and outputs; the constructs do the work."""
