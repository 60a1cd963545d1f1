"""Fault injection on a running stack: faults, load, checks, and the page of results."""
