"""The health of nodes and GPUs, from their history of faults. Pure."""
