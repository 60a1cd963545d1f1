"""Base policies: a key per job, and the order of a view by it."""
