"""The record of a gang: a Lease of the API in Berth's own namespace, where no tenant writes.

Its holder says whether the pods of the gang may be bound, and is written once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.executor.core.kubernetes.names import (
    BERTH,
    BOUND_TO,
    IDENTITY,
    MANAGED_BY,
    NAMESPACE,
    PODS,
    UIDS,
    WORLD_SIZE,
    gang_name,
    pod_name,
)

Row = Mapping[str, Any]
OPEN, STARTED, FORBIDDEN, LOST = "open", "started", "forbidden", "lost"
"""Values of the holder; `lost`: the gang may have begun, of which the API has lost its memory."""
SELECTOR = f"{MANAGED_BY}={BERTH}"
NODES_CHARS = 100_000
"""Longest list of nodes that a record has: all annotations of an object are 256 KiB at most, and
those of a gang of thousands of pods would make the API refuse its start."""


@dataclass(frozen=True, slots=True)
class GangRecord:
    """The record of one gang."""

    name: str
    """Also the ref of the gang as a job of the engine."""
    identity: str
    namespace: str
    """Where its pods are; empty: it has none, and never will."""
    workers: int
    decided: str
    version: str
    """`resourceVersion`: a change of the record names the one that it changes; empty: the API has
    no such record."""
    uid: str = ""
    """Of the Lease: a change of one that was removed meanwhile makes no new one."""
    uids: tuple[str, ...] = ()
    """Uids of its pods by rank, once it is started: what else a pod carries may be changed."""
    pods: tuple[str, ...] = ()
    """Names of its pods by rank, where its tenant created them."""
    nodes: tuple[str, ...] = ()
    """The nodes of its pods by rank, once it is started; none where they are too many, and in a
    record of an earlier release."""

    @property
    def is_adopted(self) -> bool:
        """True where its tenant created the pods, which outlive the gang."""
        return bool(self.pods)

    def pod_of(self, rank: int) -> str:
        """Return the name of the pod of a rank."""
        return self.pods[rank] if rank < len(self.pods) else pod_name(self.name, rank)


def record_of(row: Row) -> GangRecord:
    """Return a record of the API."""
    metadata, spec = row["metadata"], row.get("spec") or {}
    annotations: Row = metadata.get("annotations") or {}
    workers = str(annotations.get(WORLD_SIZE, ""))
    return GangRecord(
        name=str(metadata["name"]),
        identity=str(annotations.get(IDENTITY, "")),
        namespace=str(annotations.get(NAMESPACE, "")),
        workers=int(workers) if workers.isdecimal() else 0,
        decided=str(spec.get("holderIdentity") or OPEN),
        version=str(metadata.get("resourceVersion", "")),
        uid=str(metadata.get("uid", "")),
        uids=tuple(filter(None, str(annotations.get(UIDS, "")).split(","))),
        pods=tuple(str(annotations.get(PODS, "")).split()),
        nodes=tuple(str(annotations.get(BOUND_TO, "")).split()),
    )


def new_record(
    identity: str, namespace: str, workers: int, decided: str, pods: tuple[str, ...] = ()
) -> GangRecord:
    """Return a record that the API does not have yet."""
    name = gang_name(identity)
    return GangRecord(name, identity, namespace, workers, decided, version="", pods=pods)


def record_manifest(record: GangRecord) -> dict[str, Any]:
    """Return the object of a record; one with a version replaces that one and no other."""
    annotations = {
        IDENTITY: record.identity,
        NAMESPACE: record.namespace,
        WORLD_SIZE: str(record.workers),
    }
    if record.pods:
        annotations[PODS] = " ".join(record.pods)
    if record.uids:
        annotations[UIDS] = ",".join(record.uids)
    nodes = " ".join(record.nodes)
    if 0 < len(nodes) <= NODES_CHARS:
        annotations[BOUND_TO] = nodes
    metadata: dict[str, Any] = {
        "name": record.name,
        "labels": {MANAGED_BY: BERTH},
        "annotations": annotations,
    }
    if record.version:
        metadata |= {"resourceVersion": record.version, "uid": record.uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {"holderIdentity": record.decided},
    }
