"""Throttle: whose LLM request is served next."""
