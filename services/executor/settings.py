"""Settings of an executor."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator
from pydantic_core.core_schema import ValidationInfo

from services.executor.core.kubernetes.names import NAMESPACE_PATTERN, is_namespace
from services.executor.core.ray.submission import LONGEST_S
from shared.http.server_settings import NodeExecutors, ServerSettings, addresses_of

SLURM_NAME = r"^[A-Za-z0-9._-]*$"
SLURM_NAMES = r"^([a-z0-9._-]+:[A-Za-z0-9._-]+(,|$))*$"
"""`tenant:name,...`"""


class ExecutorSettings(ServerSettings):
    """`BERTH_` variables of this service; one process serves nodes of one or more pools.

    With an inventory it runs the virtual nodes in it; with a pool of Slurm, Kubernetes or Ray that
    engine runs the jobs of the pool; else it serves the agents of pools whose backends name
    `agent`.
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
    slurm_pool: str = Field(
        default="",
        pattern=r"^([a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?)?$",
        description="Pool whose jobs Slurm runs; its backends name slurm",
    )
    slurm_folder: Path | None = Field(
        default=None,
        validate_default=True,
        description="Folder that this machine and the nodes of Slurm share, by the same path",
    )
    slurm_partition: str = Field(
        default="",
        pattern=SLURM_NAME,
        description="Partition of Slurm whose nodes are the pool's; all nodes, and the default "
        "partition, if not given",
    )
    slurm_commands: Path | None = Field(
        default=None, description="Folder of Slurm's commands; those on PATH if not given"
    )
    slurm_user: str = Field(
        default="",
        pattern=SLURM_NAME,
        description="UNIX user of the jobs, which needs an executor of root; its own if not given",
    )
    slurm_users: str = Field(
        default="",
        pattern=SLURM_NAMES,
        description="tenant:user,...: UNIX users of these tenants' jobs instead",
    )
    slurm_account: str = Field(
        default="",
        pattern=SLURM_NAME,
        description="Account of the jobs; the default of their user if not given",
    )
    slurm_accounts: str = Field(
        default="",
        pattern=SLURM_NAMES,
        description="tenant:account,...: accounts of these tenants' jobs instead",
    )
    slurm_qos: str = Field(
        default="",
        pattern=SLURM_NAME,
        description="QOS of the jobs; the default of their account if not given",
    )
    slurm_hooks: Path | None = Field(
        default=None,
        description="Folder of the notes of Slurm's Prolog, Epilog and job completion, an "
        "absolute path; none are read if not given",
    )
    slurm_keep_d: float | None = Field(
        default=None,
        ge=1,
        description="Days for which the files of an ended job stay in the shared folder; for ever "
        "if not given",
    )
    slurm_poll_s: float = Field(
        default=1.0, ge=0.1, le=60, description="Longest time between two looks at Slurm, s"
    )
    slurm_pending_s: float = Field(
        default=20.0,
        ge=1,
        le=3600,
        description="Time for which Slurm may let a placed job wait, s; then it is placed anew",
    )

    kubernetes_pool: str = Field(
        default="",
        pattern=r"^([a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?)?$",
        description="Pool whose jobs Kubernetes runs; its backends name kubernetes",
    )
    kubernetes_config: Path | None = Field(
        default=None,
        description="A kubeconfig with a token or a certificate; the service account of the "
        "executor's own pod if not given",
    )
    kubernetes_namespace: str = Field(
        default="berth", pattern=NAMESPACE_PATTERN, description="Namespace of Berth's own records"
    )
    kubernetes_namespaces: str = Field(
        default="",
        pattern=r"^([a-z0-9._-]+:[a-z0-9-]+(,|$))*$",
        description="tenant:namespace,...: namespaces of these tenants' pods; else berth-TENANT",
    )
    kubernetes_nodes: str = Field(
        default="",
        max_length=1024,
        description="Selector of labels of the nodes that are the pool's; all nodes if not given",
    )
    kubernetes_image: str = Field(
        default="", max_length=256, description="Image of jobs that name none"
    )
    kubernetes_network: Literal["pod", "host"] = Field(
        default="pod", description="Network of the pods: their own, or that of their node"
    )
    kubernetes_priority_class: str = Field(
        default="",
        pattern=r"^[a-z0-9.-]*$",
        description="PriorityClass of the pods; the cluster's default if not given",
    )
    kubernetes_tolerations: str = Field(
        default="nvidia.com/gpu",
        pattern=r"^([^,:=]+(=[^,:]*)?(:(NoSchedule|PreferNoSchedule|NoExecute))?(,|$))*$",
        description="key[=value][:effect],...: taints of nodes that the pods tolerate",
    )
    kubernetes_disk_gib: float = Field(
        default=100.0,
        ge=0,
        description="Files that a worker may have on the disk of its node, GiB; 0: no limit",
    )
    kubernetes_pods: bool = Field(
        default=False,
        description="Make jobs of pods with schedulerName berth in the namespaces of tenants",
    )
    kubernetes_poll_s: float = Field(
        default=1.0, ge=0.1, le=60, description="Longest time between two looks at Kubernetes, s"
    )
    kubernetes_pending_s: float = Field(
        default=20.0,
        ge=1,
        le=3600,
        description="Time in which all pods of a gang have to be there, s; then it is placed anew",
    )

    ray_pool: str = Field(
        default="",
        pattern=r"^([a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?)?$",
        description="Pool whose jobs Ray runs; its backends name ray",
    )
    ray_folder: Path | None = Field(
        default=None,
        validate_default=True,
        description="Folder that this machine and the nodes of Ray share, by the same path",
    )
    ray_address: str = Field(
        default="http://127.0.0.1:8265",
        pattern=r"^https?://[^/?#@]+$",
        description="Address of Ray's dashboard, as this machine and the nodes reach it",
    )
    ray_token_file: Path | None = Field(
        default=None,
        description="File of the token of Ray's dashboard, where it has one (RAY_AUTH_MODE)",
    )
    ray_stop_after_s: float = Field(
        default=60.0,
        ge=1,
        le=LONGEST_S,
        description="Time without an answer of Ray after which workers end themselves, s",
    )
    ray_poll_s: float = Field(
        default=1.0, ge=0.1, le=60, description="Longest time between two looks at Ray, s"
    )
    ray_pending_s: float = Field(
        default=30.0,
        ge=1,
        le=3600,
        description="Time for which Ray may let a placed job wait, s; then it is placed anew",
    )

    @field_validator("slurm_folder", "ray_folder")
    @classmethod
    def _has_folder(cls, folder: Path | None, info: ValidationInfo) -> Path | None:
        pool = str(info.field_name).replace("_folder", "_pool")
        if info.data.get(pool) and (folder is None or not folder.is_absolute()):
            raise ValueError(f"an absolute path is needed with {pool}")
        return folder

    @field_validator("slurm_hooks")
    @classmethod
    def _is_absolute(cls, folder: Path | None) -> Path | None:
        if folder is not None and not folder.is_absolute():
            raise ValueError("an absolute path is needed")
        return folder

    def slurm_user_of(self, tenant: str) -> str:
        """Return the UNIX user of a tenant's jobs, empty for that of the executor."""
        return self._slurm_users.get(tenant, self.slurm_user)

    def slurm_account_of(self, tenant: str) -> str:
        """Return the account of a tenant's jobs, empty for the default of their user."""
        return _by_tenant(self.slurm_accounts).get(tenant, self.slurm_account)

    @property
    def slurm_users_named(self) -> frozenset[str]:
        """UNIX users of all tenants' jobs, without that of the executor."""
        return frozenset(filter(None, (self.slurm_user, *self._slurm_users.values())))

    @property
    def _slurm_users(self) -> dict[str, str]:
        return _by_tenant(self.slurm_users)

    def kubernetes_namespace_of(self, tenant: str) -> str:
        """Return the namespace of a tenant's pods, empty where none can have its name."""
        namespace = _by_tenant(self.kubernetes_namespaces).get(tenant, f"berth-{tenant}")
        return namespace if is_namespace(namespace) else ""

    @property
    def engine_poll_s(self) -> float:
        """Longest time between two looks at the engine, s."""
        if self.ray_pool:
            return self.ray_poll_s
        return self.kubernetes_poll_s if self.kubernetes_pool else self.slurm_poll_s

    @property
    def engine_pending_s(self) -> float:
        """Time for which the engine may let a placed job wait, s."""
        if self.ray_pool:
            return self.ray_pending_s
        return self.kubernetes_pending_s if self.kubernetes_pool else self.slurm_pending_s

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


def _by_tenant(text: str) -> dict[str, str]:
    """Return the values of `tenant:value,...` by tenant."""
    pairs = (pair.split(":") for pair in text.split(",") if pair)
    return {tenant: value for tenant, value in pairs}
