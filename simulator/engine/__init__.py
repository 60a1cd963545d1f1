"""The faithful engine: live deciders and the executor's core on a virtual clock, in one process."""
