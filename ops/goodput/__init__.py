"""Share of paid node time that trains: its forecast, for `trainctl price` and `trainctl report`."""
