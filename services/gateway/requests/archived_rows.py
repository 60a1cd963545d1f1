"""Rows that were archived, and so have left the read models: lists and 404s say so."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

from services.gateway.reads import queries
from services.gateway.responses.problem import ApiError, not_found
from services.gateway.wiring import Gateway
from shared.contracts.registry import Bearer


async def with_left_before(
    gateway: Gateway, bearer: Bearer, page: dict[str, object], table: str
) -> dict[str, object]:
    """Return the page; the last one has as `left_before` the time before which rows have left."""
    if page["next"] is None and (left_ms := await _left_ms(gateway, bearer, table)):
        page["left_before"] = left_ms
    return page


async def gone(gateway: Gateway, bearer: Bearer, kind: str, table: str) -> ApiError:
    """Return a 404 that names where rows of that table are which have left the read models."""
    left_ms = await _left_ms(gateway, bearer, table)
    if not left_ms:
        return not_found(kind)
    day = datetime.fromtimestamp(left_ms / 1000, UTC).date().isoformat()
    where = f"those from before {day} have left the database for read-models/{table} of the archive"
    return ApiError(404, "not_found", f"{kind} not found; {where}")


async def _left_ms(gateway: Gateway, bearer: Bearer, table: str) -> int:
    row = await gateway.database.row(bearer, queries.LEFT, table)
    return 0 if row is None else cast("int", row["leaving_at"])
