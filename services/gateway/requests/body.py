"""Reads the body of a request: bounded, uncompressed JSON."""

from __future__ import annotations

from fastapi import Request

from services.gateway.core.strict import Body, parse_object
from services.gateway.responses.problem import ApiError
from shared.http.bodies import BodyTooLarge, BodyTooSlow, collect_body

LIMIT_BYTES = 64 * 1024


async def raw_body(
    request: Request, limit_bytes: int = LIMIT_BYTES, *, encoded: bool = False
) -> bytes:
    """Return the bytes of the body; raises ApiError 413 as soon as the limit is exceeded.

    Raises a 408 for a body that is not here in time.
    """
    if int(request.headers.get("content-length") or 0) > limit_bytes:
        raise _too_large(limit_bytes)
    if not encoded and request.headers.get("content-encoding", "identity") != "identity":
        raise ApiError(415, "unsupported_encoding", "send the body uncompressed")
    try:
        return await collect_body(request.stream(), limit_bytes)
    except BodyTooLarge:
        raise _too_large(limit_bytes) from None
    except BodyTooSlow as error:
        raise ApiError(408, "too_slow", str(error)) from None


async def json_body(
    request: Request, limit_bytes: int = LIMIT_BYTES, *, required: bool = False
) -> Body:
    """Return the JSON object of the request; an absent body is an empty object, unless required."""
    media = request.headers.get("content-type", "application/json").partition(";")[0].strip()
    if media != "application/json":
        raise ApiError(415, "unsupported_media_type", f"{media[:64]!r}; send application/json")
    raw = await raw_body(request, limit_bytes)
    return parse_object(raw) if raw or required else {}


def _too_large(limit_bytes: int) -> ApiError:
    return ApiError(413, "too_large", f"request body too large; the limit is {limit_bytes} bytes")
