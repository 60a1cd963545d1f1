"""Executor: serves nodes, virtual ones of an inventory or those with an agent."""
