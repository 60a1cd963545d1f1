"""Processes of placement for what takes seconds: the solver and schedulers of pools."""
