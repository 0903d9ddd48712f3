"""People of a cluster: `trainctl users` edits the file of users, `trainctl usage` sums what they used."""
