"""The signature of a webhook as Standard Webhooks 1.0 defines it.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from shared.contracts.webhooks import SECRET_PREFIX


def signature_headers(secret: str, event_id: str, at_s: int, body: bytes) -> dict[str, str]:
    """Return the three headers: id, time in seconds, and HMAC-SHA256 of both and the body."""
    signed = b".".join((event_id.encode(), str(at_s).encode(), body))
    digest = hmac.digest(key_of(secret), signed, hashlib.sha256)
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def key_of(secret: str) -> bytes:
    """Return the bytes of a secret: `whsec_` and base64, or else the text itself."""
    if secret.startswith(SECRET_PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
        except binascii.Error:
            pass
    return secret.encode()
