"""API keys, `<key_id>.<secret>`: only the hash of the secret is ever kept."""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple

LONGEST = 512


class Key(NamedTuple):
    """A key taken apart; the secret stays in memory only."""

    key_id: str
    secret: str

    def __repr__(self) -> str:
        return f"Key({self.key_id!r})"


def parse_key(text: str) -> Key | None:
    """None for what is no key. Names may hold dots and secrets may not: the last dot parts them."""
    if len(text) > LONGEST:
        return None
    key_id, dot, secret = text.rpartition(".")
    return Key(key_id, secret) if key_id and dot and secret else None


def format_key(key_id: str, secret: str) -> str:
    """What its bearer is shown, once."""
    return f"{key_id}.{secret}"


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def verify_secret(secret: str, sha256: str) -> bool:
    """Takes as long for a wrong secret as for the right one."""
    return hmac.compare_digest(hash_secret(secret), sha256)
