"""Copies of the log: taken while it is written to, put back into an empty broker."""
