"""What benchmarks share: a stack, a load, a floor to compare with, a past, a command line."""
