"""Decides which GPUs a job gets, and its life on them."""
