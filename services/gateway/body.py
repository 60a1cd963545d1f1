"""Reads a request's body: bounded, plain JSON, nothing else."""

from __future__ import annotations

from fastapi import Request

from services.gateway.core.strict import Body, parse_object
from services.gateway.problem import ApiError

LIMIT_BYTES = 64 * 1024


async def raw_body(
    request: Request, limit_bytes: int = LIMIT_BYTES, *, encoded: bool = False
) -> bytes:
    """The bytes; a body over the limit is refused before it is read to its end."""
    if int(request.headers.get("content-length") or 0) > limit_bytes:
        raise _too_large(limit_bytes)
    if not encoded and request.headers.get("content-encoding", "identity") != "identity":
        raise ApiError(415, "unsupported_encoding", "send the body as it is")
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit_bytes:
            raise _too_large(limit_bytes)
        parts.append(part)
    return b"".join(parts)


async def json_body(request: Request) -> Body:
    """The JSON object of the request; an absent body is an empty one."""
    media = request.headers.get("content-type", "application/json").partition(";")[0].strip()
    if media != "application/json":
        raise ApiError(415, "unsupported_media_type", "send application/json")
    raw = await raw_body(request)
    return parse_object(raw) if raw else {}


def _too_large(limit_bytes: int) -> ApiError:
    return ApiError(413, "too_large", f"a body may have {limit_bytes} bytes")
