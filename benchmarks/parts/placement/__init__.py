"""Comparison of placement planners on contended rounds."""
