"""Names of a trace as names of Berth, and tenants for the jobs of a trace without tenants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

DEMO_TENANTS = ("vision", "language", "speech", "robotics")
NAME_LENGTH = 63
TEXT_LENGTH = 256
UNKNOWN_USER = "unknown"

_DIGEST_LENGTH = 8
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")
_OTHER = re.compile(r"[^a-z0-9._-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def slug(text: str) -> str:
    """Return a readable name of lower-case letters, cut; two texts may share one."""
    return _OTHER.sub("-", text.lower()).strip("._-")[:NAME_LENGTH].strip("._-")


def name_of(text: str) -> str:
    """Return `text` if it is a legal name; else its slug and a digest, so that none collide."""
    if len(text) <= NAME_LENGTH and _NAME.fullmatch(text):
        return text
    kept = slug(text)[: NAME_LENGTH - _DIGEST_LENGTH - 1].rstrip("._-")
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    return f"{kept}-{digest}" if kept else digest


def text_of(text: str) -> str:
    """Return free text without control characters, cut to the length of a job's name."""
    return _CONTROL.sub(" ", text)[:TEXT_LENGTH]


def assign_tenant(key: str, tenants: Sequence[str]) -> str:
    """Return one of `tenants` by a hash of the key: the same in every run and for every slice."""
    digest = sha256(key.encode("utf-8", "surrogatepass")).digest()
    return tenants[int.from_bytes(digest[:8], "big") % len(tenants)]
