"""Training of the learned priority: never needed at run time."""
