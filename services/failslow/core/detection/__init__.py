"""Detects that a job has become slow, and that it has recovered, from its iteration times."""
