"""Fail-slow: which worker of a gang is slower than its peers."""
