"""Fail-slow: detects workers of a gang that are slower than their peers."""
