"""Limits against too many requests, streams, joins and slow clients."""
