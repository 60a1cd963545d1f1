"""Schedulers that decide types, numbers and times of GPUs: one seam, and a file per system.

`hooks.py` is the seam, `compose.py` makes a proposal of a scheduler's six hooks, `check.py` says
whether a cluster can carry it out, `registry.py` finds schedulers by name.
"""
