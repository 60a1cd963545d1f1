"""Calls of the API: commands with their answer, tokens of nodes, and the nodes that live."""

from __future__ import annotations

import time
from collections.abc import Mapping

from benchmarks.parts.command import Json
from cli.api.answers import await_answer, items
from cli.api.http import Api

ALIVE_S = 60.0
POLL_S = 0.2


def answered(client: Api, path: str, body: Mapping[str, object]) -> Json:
    """Send a command and return its receipt once it was accepted. Raises Refused."""
    receipt = client.post(path, body)
    await_answer(client, receipt)
    return receipt


def join_token(client: Api, pool: str) -> str:
    """Return a join token whose nodes need no approval."""
    return str(answered(client, "/v1/nodes/tokens", {"pool": pool, "approve": True})["token"])


def until_alive(client: Api, nodes: int) -> None:
    """Wait until so many nodes live. Raises TimeoutError."""
    ends_s = time.monotonic() + ALIVE_S
    while sum(bool(row["alive"]) for row in items(client.get("/v1/nodes"))) < nodes:
        if time.monotonic() > ends_s:
            raise TimeoutError(f"fewer than {nodes} nodes have joined after {ALIVE_S:g} s")
        time.sleep(POLL_S)
