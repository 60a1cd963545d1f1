"""Kubernetes in the words of the contract of engines: what it shows, and what it is given."""
