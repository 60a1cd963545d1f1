"""Linux for the agent and its steps; it imports little, since each step loads it."""
