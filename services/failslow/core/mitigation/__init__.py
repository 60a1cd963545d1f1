"""Mitigation of slow workers: the levels, their worth, and when to apply which. Pure."""
