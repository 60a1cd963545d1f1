"""Nodes of the API in the words of the contract."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from services.executor.core.engines.contract import ANY_GPU_TYPE, CPU_TYPE, EngineNode
from services.executor.core.kubernetes.names import GPU
from services.executor.core.kubernetes.pods import PodSeen
from services.executor.core.kubernetes.quantities import parse_gib, parse_quantity
from shared.contracts.base import NAME
from shared.contracts.job_spec import HAS_IMAGES, IMAGES_LABEL

PRODUCT = "nvidia.com/gpu.product"
"""Label that NVIDIA's feature discovery writes."""
SILENCE_TAINTS = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
    }
)
"""Taints that say what the condition Ready and the cordon of a node say."""

Row = Mapping[str, Any]


class Toleration(NamedTuple):
    """A taint that pods of Berth tolerate; an empty value tolerates each."""

    key: str
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Row) -> bool:
        return (
            self.key == taint.get("key")
            and self.value in ("", str(taint.get("value") or ""))
            and self.effect in ("", taint.get("effect"))
        )


class NodeTable:
    """The nodes of a pool; one is described again only once its object or its daemons changed."""

    def __init__(self, tolerations: tuple[Toleration, ...]) -> None:
        self._tolerations = tolerations
        self._described: dict[str, tuple[Row, list[PodSeen], EngineNode]] = {}

    def of(self, rows: Iterable[Row], pods: Iterable[PodSeen]) -> dict[str, EngineNode]:
        """Return the served ones of these nodes by name; `pods` are all of the cluster."""
        daemons: dict[str, list[PodSeen]] = {}
        for pod in pods:
            if pod.is_daemon and not pod.is_over:
                daemons.setdefault(pod.node, []).append(pod)
        known, self._described = self._described, {}
        for row in filter(is_served, rows):
            name = str(row["metadata"]["name"])
            own, before = daemons.get(name, []), known.get(name)
            if before is None or before[0] is not row or before[1] != own:
                before = row, own, node_of(row, self._tolerations, own)
            self._described[name] = before
        return {name: node for name, (_, _, node) in self._described.items()}


def parse_tolerations(text: str) -> tuple[Toleration, ...]:
    """Return the tolerations of `key[=value][:effect],...`."""
    tolerations = []
    for item in filter(None, text.split(",")):
        named, _, effect = item.partition(":")
        key, _, value = named.partition("=")
        tolerations.append(Toleration(key, value, effect))
    return tuple(tolerations)


def node_of(row: Row, tolerations: Iterable[Toleration], daemons: Iterable[PodSeen]) -> EngineNode:
    """Return a node; the pods that belong to it take from its cores and its memory."""
    metadata, spec, status = row["metadata"], row.get("spec") or {}, row.get("status") or {}
    capacity: Row = status.get("allocatable") or {}
    gpus = round(parse_quantity(capacity.get(GPU)))
    daemons = tuple(daemons)
    name = str(metadata["name"])
    return EngineNode(
        node_id=name,
        gpus=gpus,
        gpu_type=_gpu_type(metadata.get("labels") or {}) if gpus else CPU_TYPE,
        cpus=max(0.0, parse_quantity(capacity.get("cpu")) - sum(pod.cpus for pod in daemons)),
        mem_gib=max(0.0, parse_gib(capacity.get("memory")) - sum(pod.mem_gib for pod in daemons)),
        address=_address(status) or name,
        boot_id=str((status.get("nodeInfo") or {}).get("bootID") or ""),
        responds=_is_ready(status),
        drained=_drained(spec, tuple(tolerations)),
        labels={IMAGES_LABEL: HAS_IMAGES},
    )


def is_served(row: Row) -> bool:
    """Return whether the name of a node is one that Berth can write."""
    return NAME.fullmatch(str(row["metadata"].get("name", ""))) is not None


def _gpu_type(labels: Row) -> str:
    product = str(labels.get(PRODUCT) or "").lower()
    return product if NAME.fullmatch(product) else ANY_GPU_TYPE


def _address(status: Row) -> str:
    addresses = {a.get("type"): str(a.get("address")) for a in status.get("addresses") or ()}
    return addresses.get("InternalIP") or addresses.get("Hostname") or ""


def _is_ready(status: Row) -> bool:
    conditions = status.get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _drained(spec: Row, tolerations: tuple[Toleration, ...]) -> str:
    """Return why nothing new is started there: its cordon, or taints that are not tolerated."""
    words = ["cordoned"] if spec.get("unschedulable") else []
    for taint in spec.get("taints") or ():
        is_soft = taint.get("effect") == "PreferNoSchedule"
        if is_soft or taint.get("key") in SILENCE_TAINTS:
            continue
        if not any(toleration.tolerates(taint) for toleration in tolerations):
            value = f"={taint['value']}" if taint.get("value") else ""
            words.append(f"taint {taint.get('key')}{value}:{taint.get('effect')}")
    return f"Kubernetes: {', '.join(words)}" if words else ""
