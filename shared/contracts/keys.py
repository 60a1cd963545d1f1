"""API keys of the form `<key_id>.<secret>`; only the hash of the secret is ever stored."""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple

MAX_KEY_CHARS = 512


class Key(NamedTuple):
    """A parsed key; the secret is never logged or stored."""

    key_id: str
    secret: str

    def __repr__(self) -> str:
        return f"Key({self.key_id!r})"


def parse_key(text: str) -> Key | None:
    """Parse a key, None if malformed. The last dot separates: only the key id may contain dots."""
    if len(text) > MAX_KEY_CHARS:
        return None
    key_id, dot, secret = text.rpartition(".")
    return Key(key_id, secret) if key_id and dot and secret else None


def parse_bearer(authorization: str | None) -> str:
    """Return the secret of a header `Authorization: Bearer`, empty for any other or none."""
    scheme, _, secret = (authorization or "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def format_key(key_id: str, secret: str) -> str:
    """Return the key as it is shown to its bearer, once."""
    return f"{key_id}.{secret}"


def hash_secret(secret: str) -> str:
    """Return the hex sha256 of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def verify_secret(secret: str, sha256: str) -> bool:
    """Return whether the secret has this hash, in constant time."""
    return hmac.compare_digest(hash_secret(secret), sha256)
