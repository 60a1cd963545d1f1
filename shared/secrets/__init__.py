"""Secrets of tenants: encrypted values, and the keys that encrypt them."""
