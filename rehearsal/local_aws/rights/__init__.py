"""Checks each call of a function, and of CloudFormation on its behalf, against the rights of its role."""
