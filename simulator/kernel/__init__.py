"""The compiled simulator: the rules of the live deciders as loops over arrays, for sweeps and training."""
