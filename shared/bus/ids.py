"""Ids of appends and local inputs."""

from __future__ import annotations

import secrets


def new_id() -> str:
    """Return a fresh id: two attempts to append are never mistaken for each other."""
    return secrets.token_hex(10)
