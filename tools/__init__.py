"""Commands for developers of the project; no deployed code imports them."""
