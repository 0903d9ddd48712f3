"""Two people on one cluster: a local Slurm with accounting, real users, and what each of them may do.

Imported by: nothing; it is a program, `python -m rehearsal.people`.
"""
