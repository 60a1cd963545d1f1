"""Throttle: decides the order in which an endpoint serves LLM requests."""
