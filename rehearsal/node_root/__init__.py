"""Throw-away machines in which nodes start for real: installing, failing and trying again as on AWS.

A base system of the distribution is made once (base.py). Each machine gets a disk of its own over it
(disk.py), and is entered through namespaces (enter.sh): what it mounts, starts or writes is gone with it.

Imported by: bench.
"""
