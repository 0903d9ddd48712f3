"""The calls that the provider's role was judged for, and those in the provider's source."""
