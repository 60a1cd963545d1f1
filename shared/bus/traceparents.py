"""W3C trace context, as far as the bus moves it on."""

from __future__ import annotations

import re
import secrets

_VALID = re.compile(r"00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


def child_of(traceparent: str) -> str:
    """The same trace with a span of its own; "" when there is none to follow."""
    found = _VALID.fullmatch(traceparent)
    return f"00-{found[1]}-{secrets.token_hex(8)}-01" if found else ""
