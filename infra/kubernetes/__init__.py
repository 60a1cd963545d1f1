"""Kubernetes: the programs of a small cluster for tests, and the manifests of an operator."""
