"""`trainctl plan`: shows the changes of a deploy, by flag."""
