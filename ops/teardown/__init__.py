"""`trainctl destroy --plan`: what is deleted, what remains at which cost, and the commands that delete it."""
