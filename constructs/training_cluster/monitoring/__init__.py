"""The dashboard, alarms and budget of a cluster."""
