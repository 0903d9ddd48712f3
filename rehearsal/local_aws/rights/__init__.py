"""The rights of functions' roles, which every call of theirs and of CloudFormation for them is judged by.

Imported by: rehearsal.
"""
