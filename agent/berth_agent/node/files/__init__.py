"""Folders and files of allocations: noted durably, passable for tenants, removed at the end."""
