"""One placement round: from a view of the pool to a plan."""
