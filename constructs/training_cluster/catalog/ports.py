"""TCP ports of file systems and of the accounting database, for security groups and for preflight."""

# FSx for Lustre guide, "File system access control with Amazon VPC".
LUSTRE_PORTS = ((988, 988), (1018, 1023))
"""First and last port of each range between Lustre's servers and clients."""
NFS_PORT = 2049
MYSQL_PORT = 3306
"""Port of Slurm's accounting database, where the flag accounting names none."""
