"""Append-only logs: the port, its adapters, and readers and writers without a lane."""
