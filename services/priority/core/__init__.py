"""In what order the waiting jobs of a pool should go."""
