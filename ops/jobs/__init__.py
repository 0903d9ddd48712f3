"""Jobs on a cluster: `trainctl submit`, `export`, `jobs`, `logs` and `cancel`.

Imported by: ops.commands, ops.diagnose, ops.price, ops.status, ops.users, ops.verify, tools.
"""
