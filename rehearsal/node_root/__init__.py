"""Throw-away machines in which nodes really start: they install, fail and retry as on AWS.

A base system of the distribution is made once (base.py). Each machine gets a disk of its own over it
(disk.py), and is entered through namespaces (enter.sh): its mounts, processes and files end with it.
"""
