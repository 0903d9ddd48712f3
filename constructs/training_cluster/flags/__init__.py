"""The context flags of the app, each a typed field."""
