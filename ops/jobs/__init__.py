"""Jobs on a cluster: `trainctl submit`, `export`, `jobs`, `logs` and `cancel`."""
