"""The calls that the provider's role was judged for."""
