"""A directory of users that exists, LDAP or Active Directory: the user's file of it."""
