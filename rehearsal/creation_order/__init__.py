"""The order in which CloudFormation creates a stack's resources, and the templates that depend on luck."""
