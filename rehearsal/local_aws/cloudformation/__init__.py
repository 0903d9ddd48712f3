"""CloudFormation's engine and its resource types."""
