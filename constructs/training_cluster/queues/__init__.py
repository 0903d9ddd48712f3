"""Queues of a cluster (Slurm partitions): their compute resources, and the user's file of more queues."""
