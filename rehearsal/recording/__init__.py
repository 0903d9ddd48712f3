"""What creating, updating and deleting a cluster takes of AWS: calls and resource types, recorded locally.

Imported by: bench, tools.
"""
