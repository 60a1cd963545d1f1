"""Pods of the API: the few fields that are kept of each, as a cluster has many."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from services.executor.core.kubernetes.names import ENDED, FINALIZER, GPU, IDENTITY, RANK, WORKER
from services.executor.core.kubernetes.pod_requests import PodRequest, request_of
from services.executor.core.kubernetes.quantities import parse_gib, parse_quantity

Row = Mapping[str, Any]
Amounts = tuple[float, float, float]
"""GPUs, cores, GiB."""
ENDED_PHASES = frozenset({"Succeeded", "Failed"})
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
RANKS = re.compile("[0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class Termination:
    """The end of a container, as its kubelet noted it; times in ms of the node's clock."""

    exit_code: int
    reason: str
    message: str
    started_ms: int
    finished_ms: int


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod, of Berth or of others; resources are those of all of its containers."""

    namespace: str
    name: str
    uid: str
    created: str
    node: str
    phase: str
    gpus: int
    cpus: float
    mem_gib: float
    identity: str
    """The identity that is written into it; empty: Berth did not create it."""
    rank: int
    is_daemon: bool
    """It belongs to the node, as those of a DaemonSet do."""
    is_deleted: bool
    """Its deletion began, which its kubelet ends."""
    is_marked: bool
    """Berth deletes it."""
    finalizers: tuple[str, ...]
    is_given_up: bool
    """The control plane ended it by itself, without its kubelet."""
    reason: str
    message: str
    waits_for: str
    """Why its container does not start yet, with the details."""
    end: Termination | None
    container: str = WORKER
    """The container whose output and exit code are those of the pod."""
    request: PodRequest | None = None
    """Its request, where it names Berth as its scheduler."""
    version: str = ""
    """`resourceVersion`: a change that names it applies to the pod as it is here alone."""

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name

    @property
    def is_kept(self) -> bool:
        """True with the finalizer of Berth."""
        return FINALIZER in self.finalizers

    @property
    def is_over(self) -> bool:
        """True where nothing of it runs or will, as of one that is deleted before it is bound."""
        return self.phase in ENDED_PHASES or (self.is_deleted and not self.node)

    @property
    def is_lost(self) -> bool:
        """True where it is over by the control plane alone, which no kubelet confirmed."""
        return self.is_over and self.is_given_up and self.end is None


def pod_of(row: Row) -> PodSeen:
    """Return a pod of the API."""
    metadata, spec, status = row["metadata"], row.get("spec") or {}, row.get("status") or {}
    annotations: Row = metadata.get("annotations") or {}
    owners = metadata.get("ownerReferences") or ()
    # Whoever may write a pod may write this, so that no value of it may break the list of all.
    rank = RANKS.fullmatch(str(annotations.get(RANK, "")))
    container = _container(metadata, spec)
    worker = _worker(status, container)
    gpus, cpus, mem_gib = _resources(spec)
    conditions = status.get("conditions") or ()
    return PodSeen(
        namespace=str(metadata.get("namespace", "")),
        name=str(metadata["name"]),
        uid=str(metadata.get("uid", "")),
        created=str(metadata.get("creationTimestamp", "")),
        node=str(spec.get("nodeName") or ""),
        phase=str(status.get("phase") or "Pending"),
        gpus=gpus,
        cpus=cpus,
        mem_gib=mem_gib,
        identity=str(annotations.get(IDENTITY, "")) if rank else "",
        rank=int(rank[0]) if rank else 0,
        is_daemon=any(owner.get("kind") in ("DaemonSet", "Node") for owner in owners),
        is_deleted=bool(metadata.get("deletionTimestamp")),
        is_marked=ENDED in annotations,
        finalizers=tuple(metadata.get("finalizers") or ()),
        is_given_up=any(
            c.get("type") == "DisruptionTarget" and c.get("reason") == "DeletionByPodGC"
            for c in conditions
        )
        or status.get("reason") == "NodeLost",
        reason=str(status.get("reason") or ""),
        message=str(status.get("message") or ""),
        waits_for=_waits_for(worker),
        end=_end(worker),
        container=container,
        request=request_of(row),
        version=str(metadata.get("resourceVersion", "")),
    )


def _resources(spec: Row) -> tuple[int, float, float]:
    """Return GPUs, cores and GiB that a pod holds at most, as Kubernetes counts them.

    Its containers run at once, with all sidecars: those containers that begin it and are restarted
    always. Another one that begins it runs alone, with the sidecars before it.
    """
    sidecars, most = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for container in spec.get("initContainers") or ():
        own = _requests(container)
        with_sidecars = _sum(sidecars, own)
        most = _most(most, with_sidecars)
        if container.get("restartPolicy") == "Always":
            sidecars = with_sidecars
    running = _sum(sidecars, *map(_requests, spec.get("containers") or ()))
    own = _most(most, running)
    if spec.get("resources"):
        _, cpus, mem_gib = _requests(spec)
        own = (own[0], cpus or own[1], mem_gib or own[2])
    gpus, cpus, mem_gib = _sum(own, _quantities(spec.get("overhead") or {}))
    return round(gpus), cpus, mem_gib


def _sum(*amounts: Amounts) -> Amounts:
    gpus, cpus, mem_gib = map(sum, zip(*amounts, strict=True))
    return gpus, cpus, mem_gib


def _most(first: Amounts, second: Amounts) -> Amounts:
    gpus, cpus, mem_gib = map(max, zip(first, second, strict=True))
    return gpus, cpus, mem_gib


def _requests(container: Row) -> Amounts:
    resources: Row = container.get("resources") or {}
    return _quantities({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _quantities(requests: Row) -> Amounts:
    return (
        parse_quantity(requests.get(GPU)),
        parse_quantity(requests.get("cpu")),
        parse_gib(requests.get("memory")),
    )


def _container(metadata: Row, spec: Row) -> str:
    """Return the name of the container that counts: a worker's own, or the one of the user."""
    names = [str(one.get("name")) for one in spec.get("containers") or ()]
    annotations: Row = metadata.get("annotations") or {}
    chosen = str(annotations.get(DEFAULT_CONTAINER, ""))
    return next((name for name in (WORKER, chosen, *names) if name in names), WORKER)


def _worker(status: Row, name: str) -> Row:
    """Return the state of the container, or of the first one that failed beside it."""
    statuses = [*(status.get("containerStatuses") or ())]
    statuses += status.get("initContainerStatuses") or ()
    states = {str(one.get("name")): one.get("state") or {} for one in statuses}
    own: Row = states.get(name) or {}
    if not _exit_code(own) and status.get("phase") == "Failed":
        return next((state for state in states.values() if _exit_code(state)), own)
    return own


def _exit_code(state: Row) -> int | None:
    ended = state.get("terminated")
    return None if ended is None else int(ended.get("exitCode") or 0)


def _waits_for(state: Row) -> str:
    waiting: Row = state.get("waiting") or {}
    return ": ".join(filter(None, (waiting.get("reason"), waiting.get("message"))))


def _end(state: Row) -> Termination | None:
    ended = state.get("terminated")
    if ended is None:
        return None
    started_ms, finished_ms = _ms(ended.get("startedAt")), _ms(ended.get("finishedAt"))
    return Termination(
        exit_code=int(ended.get("exitCode") or 0),
        reason=str(ended.get("reason") or ""),
        message=str(ended.get("message") or ""),
        started_ms=started_ms or finished_ms,
        finished_ms=finished_ms,
    )


def _ms(text: object) -> int:
    """Return a time of the API, 0 for one that is missing; it has whole seconds."""
    try:
        return round(datetime.fromisoformat(str(text)).timestamp() * 1000)
    except ValueError:
        return 0
