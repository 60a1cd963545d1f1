"""Decides the order of the waiting jobs of a pool."""
