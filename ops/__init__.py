"""What is not `cdk`: looking at a deploy while it runs."""
