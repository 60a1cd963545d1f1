"""Placement of workers with parts of GPUs, scored over all nodes at once."""
