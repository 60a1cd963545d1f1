"""Executor: the agent of many nodes; it starts, stops and reports the workers placed on them."""
