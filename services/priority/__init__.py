"""Priority: ranks the waiting jobs of a pool; placement takes the ranking as advice."""
