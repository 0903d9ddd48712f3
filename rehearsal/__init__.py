"""The rehearsal: a local AWS, a local Slurm, and the run that takes the real app through both."""
