"""Backups of the log: taken while it is written to, restored into an empty broker."""
