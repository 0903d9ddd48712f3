"""`trainctl`, the command line next to `cdk`: checks, prices, status, jobs, diagnosis, reports, teardown."""
