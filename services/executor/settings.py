"""What an executor is told at its start."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from shared.settings import Settings


class ExecutorSettings(Settings):
    """One process, many nodes, one pool or several."""

    executor_id: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Name of this process"
    )
    nodes: Path = Field(description="Inventory file: which nodes it serves")
    report_window_ms: int = Field(
        default=15, ge=0, le=1000, description="How long reports are gathered, in milliseconds"
    )
    slow: str = Field(
        default="",
        pattern=r"^([a-z0-9._-]+:[0-9]+(\.[0-9]+)?(,|$))*$",
        description="node:factor,...: virtual workers there take longer by that factor",
    )
    secrets: Path | None = Field(default=None, description="Folder of <tenant>/<name> files")
    work: Path | None = Field(
        default=None, description="Folder of the workers' directories; absent: below the data"
    )
    worker_path: str = Field(
        default="/usr/local/bin:/usr/bin:/bin", description="PATH of the workers' programs"
    )
    uid_first: int = Field(
        default=70_000,
        ge=0,
        le=2**31,
        description="As root, each worker runs as a uid of its own from here on; 0 = as root",
    )
    uid_count: int = Field(default=1000, ge=1, le=100_000, description="How many uids there are")

    @property
    def folder(self) -> Path:
        """Of this executor's journal and snapshots."""
        return self.data / "executor" / self.executor_id

    @property
    def slow_nodes(self) -> dict[str, float]:
        pairs = (pair.split(":") for pair in self.slow.split(",") if pair)
        return {node: float(factor) for node, factor in pairs}
