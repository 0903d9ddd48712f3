"""`trainctl`, for what is not `cdk`: a deploy while it runs, an account, job scripts, new workloads."""
