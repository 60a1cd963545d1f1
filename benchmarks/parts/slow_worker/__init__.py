"""Parts of the benchmark of a slow worker."""
