"""Bodies of requests: bounded in size and time, and without characters that nothing can store."""

from __future__ import annotations

import json

from aiohttp import web

from services.executor.agents.refusal import Refused
from shared.http.bodies import BodyTooLarge, BodyTooSlow, collect_body

KIB = 1024
ESCAPED_NUL = b"\\u0000"
REPLACEMENT = "\ufffd"


async def read_body(request: web.Request, max_bytes: int) -> bytes:
    """Return the body; raises a 413 as soon as it is too large and a 408 if it is too slow."""
    too_large = Refused(413, "too_large", f"body: larger than {max_bytes} bytes")
    if (request.content_length or 0) > max_bytes:
        raise too_large
    try:
        return await collect_body(request.content.iter_any(), max_bytes)
    except BodyTooLarge:
        raise too_large from None
    except BodyTooSlow as error:
        raise Refused(408, "too_slow", str(error)) from None


def replace_nul(body: bytes) -> bytes:
    """Return the JSON with U+FFFD for each NUL: a decider rejects a whole record that holds one.

    Workers may print NUL. What is not JSON is returned as it is; its reader refuses it.
    """
    if ESCAPED_NUL not in body:
        return body
    try:
        return json.dumps(_without_nul(json.loads(body))).encode()
    except (ValueError, RecursionError):
        return body


def _without_nul(value: object) -> object:
    match value:
        case str():
            return value.replace("\x00", REPLACEMENT)
        case dict():
            return {_without_nul(name): _without_nul(item) for name, item in value.items()}
        case list():
            return [_without_nul(item) for item in value]
    return value
