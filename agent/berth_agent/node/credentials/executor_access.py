"""Access to executors: their addresses, its credential, and the CA that it trusts."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

UNAUTHENTICATED = 401


@dataclass(frozen=True, slots=True)
class ExecutorAccess:
    """The way to the executors: their URLs and the node's credential."""

    urls: tuple[str, ...]
    credential: str
    tls: ssl.SSLContext
