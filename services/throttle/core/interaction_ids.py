"""Ids of interactions that the service issues, and signs with its key."""

from __future__ import annotations

import base64
import hashlib
import hmac

VALID_MS = 3_600_000
"""Time after its start in which an id is valid."""

MAC_BYTES = 16
_MARK = "i"


def issue_id(key: bytes, tenant: str, endpoint: str, started_at: int, nonce: str) -> str:
    """Return the id of an interaction that starts at a wall ms; of a tenant at an endpoint."""
    content = f"{_MARK}.{started_at:x}.{nonce}"
    return f"{content}.{_mac(key, tenant, endpoint, content)}"


def is_issued(key: bytes, tenant: str, endpoint: str, interaction: str, now: int) -> bool:
    """Return whether the service issued this id to the tenant at the endpoint, lately.

    An id from the future is one that was issued before the clock was set back.
    """
    content, _, mac = interaction.rpartition(".")
    if not (content.startswith(f"{_MARK}.") and content.isascii() and mac.isascii()):
        return False
    if not hmac.compare_digest(mac, _mac(key, tenant, endpoint, content)):
        return False
    return abs(now - int(content.split(".")[1], 16)) <= VALID_MS


def parse_key(text: str) -> bytes:
    """Return the key of a file. Raises ValueError for one that is too short."""
    key = text.strip().encode()
    if len(key) < MAC_BYTES:
        raise ValueError(f"interaction_key: {len(key)} bytes; at least {MAC_BYTES} are required")
    return key


def _mac(key: bytes, tenant: str, endpoint: str, content: str) -> str:
    text = "\n".join((tenant, endpoint, content))
    digest = hmac.digest(key, text.encode(), hashlib.sha256)[:MAC_BYTES]
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
