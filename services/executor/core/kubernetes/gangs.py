"""Gangs of Berth in the words of the contract: from their records and their pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from services.executor.core.engines.contract import (
    NO_FAILURE,
    EngineJob,
    EnginePhase,
    GangProgress,
    RankEnd,
)
from services.executor.core.kubernetes.ends import lost_failure, rank_ends
from services.executor.core.kubernetes.names import pod_name
from services.executor.core.kubernetes.pods import PodSeen
from services.executor.core.kubernetes.records import FORBIDDEN, STARTED, GangRecord

REFUSED_WAITS = frozenset(
    {
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "CreateContainerConfigError",
        "CreateContainerError",
    }
)
"""Reasons for which a kubelet starts no container, whatever the time."""
PodKey = tuple[str, str]


class KubernetesGang(NamedTuple):
    """A gang of the API: its record, and those of its pods that are there, by rank."""

    record: GangRecord
    pods: Mapping[int, PodSeen]

    @property
    def is_whole(self) -> bool:
        return len(self.pods) == self.record.workers

    @property
    def living(self) -> tuple[PodSeen, ...]:
        return tuple(pod for pod in self.pods.values() if not pod.is_over)

    @property
    def unbound(self) -> tuple[PodSeen, ...]:
        return tuple(pod for pod in self.living if not pod.node and not pod.is_deleted)

    @property
    def owner(self) -> str:
        return f"pods {self.record.namespace}/{self.record.name}-*"


@dataclass(frozen=True, slots=True)
class Pods:
    """All pods of the cluster, by namespace and name."""

    by_key: Mapping[PodKey, PodSeen]

    def of(self, record: GangRecord) -> KubernetesGang:
        """Return the gang of a record; a pod counts if it has the identity of the record too."""
        pods = {}
        for rank in range(record.workers):
            pod = self.by_key.get((record.namespace, pod_name(record.name, rank)))
            if pod is not None and (pod.identity, pod.rank) == (record.identity, rank):
                pods[rank] = pod
        return KubernetesGang(record, pods)


def job_of(gang: KubernetesGang) -> EngineJob:
    """Return a gang as a job of the engine."""
    record = gang.record
    if record.decided == STARTED:
        return _ended(gang) if not gang.living else _running(gang)
    if record.decided == FORBIDDEN:
        if not gang.pods:
            return replace(_job(gang, EnginePhase.ENDED), is_kept=True)
        return _job(gang, EnginePhase.RUNNING)
    if not gang.is_whole:
        return replace(_job(gang, EnginePhase.PENDING), is_partial=True)
    gone = [pod.name for pod in gang.pods.values() if pod.is_over]
    waits_for = f"pod {gone[0]} was deleted in Kubernetes" if gone else ""
    job = _job(gang, EnginePhase.RUNNING)
    return replace(job, is_refused=bool(gone), waits_for=waits_for)


def _ended(gang: KubernetesGang) -> EngineJob:
    lost = not gang.is_whole or any(pod.is_lost for pod in gang.pods.values())
    failure = lost_failure(gang.owner) if lost else NO_FAILURE
    job = _job(gang, EnginePhase.ENDED)
    return replace(job, is_kept=True, lost_node=lost, failure=failure)


def _running(gang: KubernetesGang) -> EngineJob:
    """Return a gang of which pods live, or are not bound yet."""
    waits = [p.waits_for for p in gang.living if p.waits_for.split(":")[0] in REFUSED_WAITS]
    return replace(
        _job(gang, EnginePhase.RUNNING),
        has_failed=not gang.is_whole
        or any(pod.is_over and pod.phase != "Succeeded" for pod in gang.pods.values()),
        waits_for=waits[0] if waits else "",
        is_refused=bool(waits),
    )


def _job(gang: KubernetesGang, phase: EnginePhase) -> EngineJob:
    bound = [pod for pod in gang.living if pod.node]
    counts: dict[str, int] = {}
    for pod in bound:
        counts[pod.node] = counts.get(pod.node, 0) + pod.gpus
    return EngineJob(
        ref=gang.record.name,
        identity=gang.record.identity,
        phase=phase,
        owner=gang.owner,
        nodes=tuple(pod.node for pod in bound),
        gpu_counts=counts,
    )


def progress_of(gang: KubernetesGang, outputs: Mapping[str, tuple[str, ...]]) -> GangProgress:
    """Return the progress of a gang; `outputs` are last lines by the uid of a pod."""
    decided = gang.record.decided
    is_ready = gang.is_whole and decided != FORBIDDEN
    ends: Mapping[int, RankEnd] = rank_ends(gang.pods, outputs) if decided == STARTED else {}
    return GangProgress(
        ready=gang.record.name if is_ready else "",
        is_begun=decided == STARTED,
        needs_start=decided == STARTED and bool(gang.unbound),
        is_forbidden=decided == FORBIDDEN,
        ends=ends,
    )


def foreign_jobs(pods: Iterable[PodSeen], own: Iterable[PodKey]) -> list[EngineJob]:
    """Return pods that hold GPUs and are in no record, the oldest first."""
    known = set(own)
    holding = [p for p in pods if p.gpus and p.node and not p.is_over and p.key not in known]
    return [
        EngineJob(
            ref=f"{pod.namespace}/{pod.name}",
            identity="",
            phase=EnginePhase.RUNNING,
            owner=f"pod {pod.namespace}/{pod.name}",
            nodes=(pod.node,),
            gpu_counts={pod.node: pod.gpus},
        )
        for pod in sorted(holding, key=lambda pod: (pod.created, pod.key))
    ]
