"""Checks of the account: credentials, names, leftovers of earlier deploys."""
