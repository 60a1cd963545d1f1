"""Nodes of a running stack: real agents that join it by a token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from berth_agent.node.credentials.identity import read_identity
from infra.machine.owned_folders import scratch_folder
from tests.agent.node_bench import NodeBench
from tests.e2e.stand import Stand, eventually


class JoinedNode(NodeBench):
    """A node that joins a pool of the stand, as an operator does it on the machine."""

    def __init__(
        self, stand: Stand, pool: str, folder: Path, node_id: str, *executors: str
    ) -> None:
        self._stand = stand
        self._pool = pool
        super().__init__(folder, node_id, *executors)

    def join(self, *executors: str) -> None:
        token = make_token(self._stand, self._pool)
        trust = ("--ca", str(self._stand.stack.ca)) if self._stand.stack.tls else ()
        words = (self._stand.stack.gateway, "--token", token, "--node-id", self.node_id)
        own = [word for url in executors for word in ("--executor", url)]
        done = self.call("join", *words, *trust, *own)
        assert done.returncode == 0, done.stderr
        self.installation = read_identity(str(self.state)).installation

    def row(self) -> dict[str, Any] | None:
        """Return the node as the API shows it."""
        page = self._stand.get("/v1/nodes?limit=1000")
        rows = page["items"] if page else []
        return next((row for row in rows if row["node_id"] == self.node_id), None)

    def workers_of(self, job_id: str) -> list[str]:
        """Return the allocations of a job that the agent holds."""
        workers = self.status().get("workers", [])
        return [worker["allocation_id"] for worker in workers if worker["job_id"] == job_id]


def make_token(stand: Stand, pool: str) -> str:
    """Return a join token whose nodes need no approval."""

    def created() -> str | None:
        status, receipt = stand.call("POST", "/v1/nodes/tokens", {"pool": pool, "approve": True})
        if status != 202 or not stand.answer(receipt["command_id"])["accepted"]:
            return None
        return str(receipt["token"])

    return eventually(created)


@contextmanager
def a_joined_node(
    stand: Stand, pool: str, node_id: str, *executors: str, **settings: Any
) -> Iterator[JoinedNode]:
    """A node whose agent runs and has registered."""
    with scratch_folder("node") as folder:
        node = JoinedNode(stand, pool, folder, node_id, *executors)
        node.settings |= settings
        try:
            node.start()
            eventually(lambda: (row := node.row()) and row["alive"])
            yield node
        finally:
            node.close()
