"""Two people on one cluster, a program: `python -m rehearsal.people`.

A local Slurm with accounting, real users, and what each of them may do.
"""
