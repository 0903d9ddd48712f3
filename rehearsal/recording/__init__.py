"""Recordings of the AWS calls and resource types of cluster creation, update and deletion, made locally.

Imported by: tools.
"""
