"""Parts of the benchmark of reported iterations."""
