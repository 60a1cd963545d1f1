"""Rounds of pools whose jobs a scheduler of types and numbers of GPUs allots."""
