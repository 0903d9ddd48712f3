"""Code of all workloads: `data`, from text to token shards, and `run`, from settings to the report."""
