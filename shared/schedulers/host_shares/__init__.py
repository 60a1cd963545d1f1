"""Cores and memory of jobs by their sensitivity to them, beside GPUs that others have chosen."""
