"""Rules of the agent without clock, file or network."""
