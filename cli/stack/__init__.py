"""A stack on this machine: its first setup, its node, its records and read models."""
