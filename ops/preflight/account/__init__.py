"""Checks of the account: credentials, conflicting names, budgets, and resources that the flags name."""
