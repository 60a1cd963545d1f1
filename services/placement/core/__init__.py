"""Placement's decider: pure, no input or output."""
