"""Faults on purpose, for drills and tests: a killed service, a bad network."""
