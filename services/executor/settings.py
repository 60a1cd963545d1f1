"""Settings of an executor."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from shared.http.server_settings import NodeExecutors, ServerSettings, addresses_of


class ExecutorSettings(ServerSettings):
    """`BERTH_` variables of this service; one process serves nodes of one or more pools.

    With an inventory it runs the virtual nodes in it; without one it serves the agents of
    pools whose backends name `agent`.
    """

    executor_id: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Name of this process"
    )
    nodes: Path | None = Field(
        default=None, description="Inventory file of the nodes; agents are served if not given"
    )
    agent_pools: str = Field(
        default="",
        pattern=r"^([a-z0-9._-]+(,[a-z0-9._-]+)*)?$",
        description="Pools whose agents are served, as pool,...; all with the backend agent if "
        "not given",
    )
    report_window_ms: int = Field(
        default=15,
        ge=0,
        le=1000,
        description="Least time between two records of reports, in milliseconds",
    )
    slow: str = Field(
        default="",
        pattern=r"^([a-z0-9._-]+:[0-9]+(\.[0-9]+)?(,|$))*$",
        description="node:factor,...: slow down virtual workers there by that factor",
    )
    secret_keys: Path | None = Field(
        default=None, description="File of the keys that decrypt tenants' secrets"
    )
    secrets: Path | None = Field(
        default=None,
        description="Folder of secrets of earlier releases, <tenant>/<name>, until they are "
        "imported",
    )
    bundles: str = Field(
        default="",
        description="Folder or address (s3://BUCKET/PREFIX?...) of the bundles of jobs; jobs get "
        "none if not given",
    )
    node_executors: NodeExecutors = ""

    @property
    def folder(self) -> Path:
        """Folder of this executor's snapshots."""
        return self.data / "executor" / self.executor_id

    @property
    def pools_of_agents(self) -> frozenset[str]:
        """Pools whose agents are served; empty for all."""
        return frozenset(pool for pool in self.agent_pools.split(",") if pool)

    @property
    def executors(self) -> tuple[str, ...]:
        """Base addresses of the executors of nodes, which agents learn with each session."""
        return addresses_of(self.node_executors)

    @property
    def slow_nodes(self) -> dict[str, float]:
        pairs = (pair.split(":") for pair in self.slow.split(",") if pair)
        return {node: float(factor) for node, factor in pairs}
