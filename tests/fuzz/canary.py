"""The mark of what one tenant may not read of another."""

from __future__ import annotations

CANARY = b"canary-of-bob"
"""A text in every row of bob, and in no other."""
