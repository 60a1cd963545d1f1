"""Records of `logs`, as executors write them."""

from __future__ import annotations

import json

from shared.ledger import cloudevents


def printed(
    first: int,
    *lines: str,
    job: str = "j1",
    tenant: str = "ada",
    rank: int = 0,
    attempt: int = 1,
    **more: object,
) -> bytes:
    data = {
        **more,
        "job_id": job,
        "tenant": tenant,
        "rank": rank,
        "attempt": attempt,
        "first_line": first,
        "lines": lines,
    }
    return cloudevents.encode(
        id="l", source="/berth/executor", type="worker.printed.v1", data=json.dumps(data).encode()
    )
