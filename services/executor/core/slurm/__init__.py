"""Slurm in the words of the contract of engines: what it shows, and the job that it is given."""
