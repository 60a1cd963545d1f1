"""Says in what order the waiting jobs of a pool should go; placement takes it as advice."""
