"""Queries of the read models, page by page."""
