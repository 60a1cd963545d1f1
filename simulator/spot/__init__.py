"""Guaranteed and spot jobs on the GPUs of one type, to study quotas of spot jobs."""
