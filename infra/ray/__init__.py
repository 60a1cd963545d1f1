"""A real Ray on this machine, for tests and benchmarks."""
