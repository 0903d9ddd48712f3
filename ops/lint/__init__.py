"""`trainctl lint`: finds obsolete and harmful settings in job scripts, by the rules of rules.yaml."""
