"""Nodes whose workers an engine of the site runs: Slurm, and others by the same contract."""
