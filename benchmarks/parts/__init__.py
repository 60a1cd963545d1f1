"""Building blocks of the benchmarks: a stack, a load generator, a floor, a command line."""
