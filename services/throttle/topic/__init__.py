"""Requests that come by `llm.requests`: their bodies are read from it, answers go to tenants."""
