"""Gangs of Berth in the words of the contract: from their records and their pods."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from services.executor.core.engines.contract import (
    NO_FAILURE,
    EngineJob,
    EnginePhase,
    GangProgress,
    RankEnd,
)
from services.executor.core.kubernetes.ends import forgotten_failure, lost_failure, rank_ends
from services.executor.core.kubernetes.names import gang_name, pod_name
from services.executor.core.kubernetes.pods import PodSeen
from services.executor.core.kubernetes.records import (
    FORBIDDEN,
    LOST,
    OPEN,
    STARTED,
    GangRecord,
    new_record,
)

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
RESTORED_S = 60.0
"""Time for which a node has to be Ready until its kubelet has surely read the pods of an API that
was restored: by then the control plane takes a silent one for NotReady."""
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
    def is_orphaned(self) -> bool:
        """True where the API has no record of the pods: a late executor created them, or it was
        removed by hand."""
        return not self.record.version

    @property
    def has_begun(self) -> bool:
        """True where a pod was bound, which none is before its gang is started."""
        return any(pod.node for pod in self.pods.values())

    def strays(self, nodes: Mapping[int, str]) -> Iterator[PodSeen]:
        """Yield pods that another bound: to other nodes than these, which are by rank."""
        for rank, pod in self.pods.items():
            if pod.node and pod.node != nodes.get(rank, pod.node):
                yield pod

    @property
    def adopted(self) -> tuple[str, ...]:
        """Return the names of its pods by rank where a tenant created them, for a new record."""
        if not any(map(is_adopted, self.pods.values())):
            return ()
        pods = (self.pods.get(rank) for rank in range(max(self.pods) + 1))
        return tuple("-" if pod is None else pod.name for pod in pods)

    @property
    def owner(self) -> str:
        names = self.record.pods[0] if self.record.is_adopted else f"{self.record.name}-*"
        return f"pods {self.record.namespace}/{names}"


@dataclass(frozen=True, slots=True)
class Pods:
    """All pods of the cluster, by namespace and name."""

    by_key: Mapping[PodKey, PodSeen]

    def of(self, record: GangRecord) -> KubernetesGang:
        """Return the gang of a record.

        A pod of the name counts if it has the uid that the record has, before the start the
        identity.
        """
        if not record.namespace:
            return KubernetesGang(record, self._with_identity(record.identity))
        pods = {}
        for rank in range(record.workers):
            pod = self.by_key.get((record.namespace, record.pod_of(rank)))
            if pod is not None and _is_of(pod, record, rank):
                pods[rank] = pod
        return KubernetesGang(record, pods)

    def _with_identity(self, identity: str) -> dict[int, PodSeen]:
        """Return pods of a gang that was forbidden before it was submitted, and so has none."""
        pods = self.by_key.values()
        return {pod.rank: pod for pod in pods if pod.identity == identity and _is_berths(pod)}

    def orphaned(self, records: Collection[str]) -> Iterator[KubernetesGang]:
        """Yield the gangs of pods that Berth created or adopted, without one of these records."""
        gangs: dict[tuple[str, str], dict[int, PodSeen]] = {}
        for pod in self.by_key.values():
            if _is_berths(pod) and gang_name(pod.identity) not in records:
                gangs.setdefault((pod.namespace, pod.identity), {})[pod.rank] = pod
        for (namespace, identity), pods in gangs.items():
            yield KubernetesGang(new_record(identity, namespace, 0, OPEN), pods)


def _is_of(pod: PodSeen, record: GangRecord, rank: int) -> bool:
    if record.uids:
        return rank < len(record.uids) and pod.uid == record.uids[rank]
    return (pod.identity, pod.rank) == (record.identity, rank)


def _is_berths(pod: PodSeen) -> bool:
    """Return whether a pod has an identity, and the name that follows from it or Berth as its
    scheduler."""
    return bool(pod.identity) and (pod.request is not None or _is_named(pod))


def is_adopted(pod: PodSeen) -> bool:
    """Return whether a pod of Berth was created by its tenant."""
    return _is_berths(pod) and not _is_named(pod)


def _is_named(pod: PodSeen) -> bool:
    """Return whether a pod has the name of its identity and its rank."""
    return pod.name == pod_name(gang_name(pod.identity), pod.rank)


def failed_pods(gang: KubernetesGang) -> list[PodSeen]:
    """Return the pods of which the last lines are reported, once none of their gang lives."""
    if gang.living or gang.record.decided != STARTED:
        return []
    return [pod for pod in gang.pods.values() if pod.end is not None and pod.end.exit_code]


def job_of(gang: KubernetesGang, unread: Collection[str] = ()) -> EngineJob:
    """Return a gang as a job of the engine; `unread` are uids of pods whose last lines still come.

    Until they are there the gang is ending, so that its end is reported with them.
    """
    record = gang.record
    if gang.is_orphaned:
        is_bound = any(pod.node for pod in gang.living)
        phase = EnginePhase.RUNNING if is_bound else EnginePhase.PENDING
        return replace(_job(gang, phase), is_partial=True)
    if record.decided == STARTED:
        if any(pod.uid in unread for pod in gang.pods.values()):
            return _job(gang, EnginePhase.ENDING)
        return _ended(gang) if not gang.living else _running(gang)
    if record.decided == FORBIDDEN:
        if not gang.pods:
            return replace(_job(gang, EnginePhase.ENDED), is_kept=True)
        return _job(gang, EnginePhase.RUNNING)
    if record.decided == LOST:
        return _forgotten(gang)
    if not gang.is_whole:
        return replace(_job(gang, EnginePhase.PENDING), is_partial=True)
    gone = [pod.name for pod in gang.pods.values() if pod.is_over]
    waits_for = f"pod {gone[0]} was deleted in Kubernetes" if gone else ""
    job = _job(gang, EnginePhase.RUNNING)
    return replace(job, is_refused=bool(gone), waits_for=waits_for)


def _forgotten(gang: KubernetesGang) -> EngineJob:
    """Return a gang of which kubelets may still run what the API does not know."""
    if gang.living:
        return replace(_job(gang, EnginePhase.RUNNING), has_failed=True)
    failure = forgotten_failure(gang.owner)
    job = _job(gang, EnginePhase.ENDED)
    return replace(job, is_kept=True, lost_node=True, failure=failure)


def _ended(gang: KubernetesGang) -> EngineJob:
    lost = not gang.is_whole or any(pod.is_lost for pod in gang.pods.values())
    failure = lost_failure(gang.owner) if lost else NO_FAILURE
    job = _job(gang, EnginePhase.ENDED)
    return replace(job, is_kept=True, lost_node=lost, failure=failure)


def _running(gang: KubernetesGang) -> EngineJob:
    """Return a gang of which pods live, or are not bound yet."""
    waits = [p.waits_for for p in gang.living if p.waits_for.split(":")[0] in REFUSED_WAITS]
    strays = gang.strays(dict(enumerate(gang.record.nodes)))
    waits += [f"pod {p.name} was bound to node {p.node} by another than Berth" for p in strays]
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
    is_ready = gang.is_whole and decided in (OPEN, STARTED)
    ends: Mapping[int, RankEnd] = rank_ends(gang.pods, outputs) if decided == STARTED else {}
    return GangProgress(
        ready=gang.record.name if is_ready else "",
        is_begun=decided in (STARTED, LOST),
        needs_start=decided == STARTED and bool(gang.unbound),
        is_forbidden=decided == FORBIDDEN,
        settle_s=RESTORED_S if decided == LOST else 0.0,
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
