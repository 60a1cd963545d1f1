"""Queueing disciplines: which waiting request an endpoint serves next, and whom it throttles."""
