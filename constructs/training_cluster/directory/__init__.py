"""A directory of users that exists, LDAP or Active Directory: the user's file of it.

Imported by: ops, training_cluster.cluster, training_cluster.rules.
"""
