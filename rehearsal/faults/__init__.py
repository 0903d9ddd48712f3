"""Faults of AWS, head nodes and Lambda functions; no resource of the app may be stranded or lost."""
