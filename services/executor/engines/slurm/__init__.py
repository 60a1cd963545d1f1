"""The shell of Slurm: its commands, and the folder that its nodes share with the executor."""
