"""Learned policies: a checked network, and the features that it reads."""
