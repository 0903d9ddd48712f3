"""Small CDK apps to compare ours with.

Imported by: nobody; run by name.
"""
