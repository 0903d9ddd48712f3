"""Commands for those who work on the project; nothing that is deployed imports them."""
