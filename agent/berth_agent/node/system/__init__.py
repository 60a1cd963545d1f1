"""The machine and its users: what it has, what its kernel permits, how fast it is."""
