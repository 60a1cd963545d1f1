"""Studies of workers with parts of GPUs: how much of a cluster stays unallocated."""
