"""The people of a cluster: the user's file of them, and what nodes make of it."""
