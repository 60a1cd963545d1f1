"""Readers of what other tools write about the ranks of a training: pure, from bytes or text."""
