"""Requests become commands or queries: authorization, body, filters."""
