"""A value as bytes that begin with their SHA-256, so that damage is noticed. A pickle is code."""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

DIGEST_BYTES = 32
UNREADABLE = (pickle.UnpicklingError, AttributeError, ImportError, TypeError, ValueError, EOFError)
"""Errors of unpickling when the classes are no longer those that were stored."""


class Damaged(ValueError):
    """The bytes are others than those that were packed."""


def pack(value: object) -> bytes:
    body = pickled(value)
    return digest_of(body) + body


def pickled(value: object) -> bytes:
    """Return a copy of the value, without the digest: both take as long for a large state."""
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def digest_of(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


def unpack(packed: bytes) -> Any:
    """Return the value. Raises Damaged, and an error of `UNREADABLE`."""
    digest, body = packed[:DIGEST_BYTES], packed[DIGEST_BYTES:]
    if digest_of(body) != digest:
        raise Damaged("the bytes have another SHA-256")
    return pickle.loads(body)
