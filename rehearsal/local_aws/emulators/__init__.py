"""Access to the internals of ministack and moto."""
