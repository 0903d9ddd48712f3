"""Jobs on a cluster: `trainctl submit`, `jobs`, `logs` and `cancel`."""
