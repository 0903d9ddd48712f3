"""The rehearsal: a local AWS, a local Slurm, and a run of the real app on both."""
