"""`trainctl`, the command line beside `cdk`: checks, prices, status, jobs, diagnosis, reports, teardown."""
