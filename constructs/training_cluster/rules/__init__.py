"""Reader of the flags in the CDK context, and rules between flags: combinations that it refuses."""
