"""Containers of the local Slurm: an image made here, and what Pyxis and Enroot do with it on a node."""
