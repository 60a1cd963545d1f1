"""Workloads: real and synthetic traces as one list of jobs, and a time scale to replay them."""
