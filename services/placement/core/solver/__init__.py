"""Contended rounds: the instance, the CP-SAT model and the check of its answer."""
