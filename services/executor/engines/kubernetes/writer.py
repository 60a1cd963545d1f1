"""Writes to the API for a gang: each may be repeated, by this executor or by another one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from services.executor.core.engines.gangs import EngineGang
from services.executor.core.kubernetes.gangs import KubernetesGang, is_adopted
from services.executor.core.kubernetes.manifests import (
    PodOptions,
    binding_manifest,
    grace_seconds,
    needs_service,
    owner_reference,
    pod_manifest,
    service_manifest,
)
from services.executor.core.kubernetes.names import ENDED, FINALIZER, gang_name, pod_name
from services.executor.core.kubernetes.pods import PodSeen
from services.executor.core.kubernetes.records import (
    FORBIDDEN,
    LOST,
    OPEN,
    STARTED,
    GangRecord,
    new_record,
    record_manifest,
    record_of,
)
from services.executor.engines.engine import EngineAway
from services.executor.engines.kubernetes.adoption import path_of, release
from services.executor.engines.kubernetes.api import (
    CONFLICT,
    INVALID,
    NOT_FOUND,
    ApiRefusal,
    KubernetesApi,
)
from services.executor.engines.kubernetes.creation import ensure, unless_there
from services.executor.engines.kubernetes.together import together
from shared.contracts.failures import Failure


class GangWriter:
    """`records` is the path of the records, `namespace_of` takes a tenant."""

    def __init__(
        self,
        api: KubernetesApi,
        records: str,
        namespace_of: Callable[[str], str],
        options: PodOptions,
    ) -> None:
        self._api = api
        self._records = records
        self._namespace_of = namespace_of
        self._options = options

    async def submit(self, gang: EngineGang, seen: KubernetesGang | None) -> Failure | None:
        """Create the record of a gang, and its pods, which are bound to no node yet.

        A gang that is decided gets no pods: this executor may be late. `seen` has pods where the
        API has no record of them.
        """
        namespace = self._namespace_of(gang.launch.tenant)
        workers = gang.launch.world_size
        decided = STARTED if seen is not None and seen.has_begun else OPEN
        try:
            manifest = record_manifest(new_record(gang.identity, namespace, workers, decided))
            record = record_of(await ensure(self._api, self._records, manifest))
            if record.decided == OPEN:
                await self._create_pods(gang, record.namespace)
        except ApiRefusal as error:
            permanent = error.status == INVALID
            detail = f"Kubernetes: {error}"[:1024]
            return Failure(reason="engine_refused", detail=detail, permanent=permanent)
        return None

    async def _create_pods(self, gang: EngineGang, namespace: str) -> None:
        """Create the pod of rank 0, which owns the rest, and then the rest."""
        core = f"/api/v1/namespaces/{namespace}"
        first, *others = gang.workers
        pod = pod_manifest(gang, first, namespace, self._options, None)
        created = await ensure(self._api, f"{core}/pods", pod)
        name = pod_name(gang_name(gang.identity), first.launch.rank)
        owner = owner_reference(name, str(created["metadata"]["uid"]))
        if needs_service(gang, self._options):
            service = self._api.create(f"{core}/services", service_manifest(gang, owner))
            await unless_there(service)
        await together(
            ensure(
                self._api,
                f"{core}/pods",
                pod_manifest(gang, worker, namespace, self._options, owner),
            )
            for worker in others
        )

    async def start(self, gang: EngineGang, seen: KubernetesGang | None) -> None:
        """Decide that the gang starts, and bind its pods; without effect if it was forbidden.

        None is bound where another than Berth bound one of them: the next look ends the gang.
        """
        nodes = {worker.launch.rank: worker.node_id for worker in gang.workers}
        if seen is None or not await self._decide_start(seen, nodes) or any(seen.strays(nodes)):
            return
        await together(
            self._bind(pod, nodes[rank])
            for rank, pod in seen.pods.items()
            if not pod.node and not pod.is_over
        )

    async def _decide_start(self, seen: KubernetesGang, nodes: Mapping[int, str]) -> bool:
        """Return whether the gang is started, with uids and nodes of its pods in its record."""
        record = seen.record
        if record.decided != OPEN:
            return record.decided == STARTED
        if not seen.is_whole or len(seen.living) < len(seen.pods):
            return False
        ranks = range(record.workers)
        uids, to = (
            tuple(seen.pods[rank].uid for rank in ranks),
            tuple(map(nodes.__getitem__, ranks)),
        )
        return await self._decide(replace(record, decided=STARTED, uids=uids, nodes=to))

    async def _bind(self, pod: PodSeen, node: str) -> None:
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding"
        await self._ignoring(
            self._api.create(path, binding_manifest(pod.name, pod.uid, node)), NOT_FOUND, CONFLICT
        )

    async def forbid(self, identity: str, seen: KubernetesGang | None) -> None:
        """Decide that the gang never starts; without effect if it has."""
        if seen is not None and not seen.is_orphaned:
            if seen.record.decided == OPEN:
                await self._decide(replace(seen.record, decided=FORBIDDEN))
            return
        record = new_record(identity, "", 0, FORBIDDEN)
        if seen is not None:
            decided = STARTED if seen.has_begun else FORBIDDEN
            namespace, workers = seen.record.namespace, max(seen.pods) + 1
            record = new_record(identity, namespace, workers, decided, seen.adopted)
        await self._ignoring(self._api.create(self._records, record_manifest(record)), CONFLICT)

    async def note_lost(self, gang: EngineGang, seen: KubernetesGang | None) -> None:
        """Decide that a gang has begun and is lost; without effect if it is decided."""
        if seen is not None and not seen.is_orphaned:
            if seen.record.decided == OPEN:
                await self._decide(replace(seen.record, decided=LOST))
            return
        namespace, workers = self._namespace_of(gang.launch.tenant), gang.launch.world_size
        adopted = seen.adopted if seen is not None else ()
        record = new_record(gang.identity, namespace, workers, LOST, adopted)
        await self._ignoring(self._api.create(self._records, record_manifest(record)), CONFLICT)

    async def _decide(self, record: GangRecord) -> bool:
        """Write the decision of an open record; return whether it is that. Raises EngineAway."""
        path = f"{self._records}/{record.name}"
        change = self._api.replace(path, record_manifest(record))
        return await self._ignoring(change, NOT_FOUND, CONFLICT)

    async def end(self, seen: KubernetesGang | None, grace_s: float) -> None:
        """Delete the pods of a gang: SIGTERM now, SIGKILL after the grace.

        A gang that is open is forbidden first. One that is started keeps its pods until their ends
        are read; of others those that no kubelet has go at once.
        """
        if seen is None:
            return
        if seen.is_orphaned:
            # They may lie where Berth has no rights any more, which must hold up no other gang.
            with suppress(EngineAway):
                await self._end_pods(seen, grace_s, has_started=False)
            return
        has_started = seen.record.decided == STARTED
        if seen.record.decided == OPEN:
            has_started = seen.has_begun
            decided = STARTED if has_started else FORBIDDEN
            if not await self._decide(replace(seen.record, decided=decided)):
                return
        await self._end_pods(seen, grace_s, has_started=has_started)

    async def _end_pods(self, seen: KubernetesGang, grace_s: float, *, has_started: bool) -> None:
        await together(
            self._delete(pod, grace_s)
            if not pod.is_over and (pod.node or has_started)
            else self._let_go(seen, pod)
            for pod in seen.pods.values()
            if not (pod.is_over and has_started)
        )

    async def forget(self, seen: KubernetesGang | None) -> None:
        """Remove the pods of a gang that is over, and then its record; else end what lives."""
        if seen is None:
            return
        if seen.living:
            await self.end(seen, 0.0)
            return
        await together(self._let_go(seen, pod) for pod in seen.pods.values())
        path = f"{self._records}/{seen.record.name}"
        options = {"preconditions": {"resourceVersion": seen.record.version}}
        await self._ignoring(self._api.delete(path, options), NOT_FOUND, CONFLICT)

    async def _delete(self, pod: PodSeen, grace_s: float) -> None:
        """Have the kubelet end a pod, whose object stays; a mark says that Berth did so."""
        path = path_of(pod)
        if not pod.is_deleted:
            mark = {"metadata": {"uid": pod.uid, "annotations": {ENDED: "true"}}}
            await self._ignoring(self._api.patch(path, mark), NOT_FOUND, CONFLICT)
        options = {"gracePeriodSeconds": grace_seconds(grace_s), "preconditions": {"uid": pod.uid}}
        await self._ignoring(self._api.delete(path, options), NOT_FOUND, CONFLICT)

    async def _let_go(self, seen: KubernetesGang, pod: PodSeen) -> None:
        """Remove a pod of which nothing runs, or give it back to the tenant that created it."""
        if seen.record.is_adopted or is_adopted(pod):
            await self._ignoring(release(self._api, pod), NOT_FOUND, CONFLICT)
        else:
            await self._remove(pod)

    async def _remove(self, pod: PodSeen) -> None:
        """Remove a pod of which nothing runs, with its object."""
        path = path_of(pod)
        if pod.is_kept:
            others = [name for name in pod.finalizers if name != FINALIZER]
            change = {"metadata": {"uid": pod.uid, "finalizers": others}}
            await self._ignoring(self._api.patch(path, change), NOT_FOUND, CONFLICT)
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}}
        await self._ignoring(self._api.delete(path, options), NOT_FOUND, CONFLICT)

    async def _ignoring(self, request: Awaitable[object], *statuses: int) -> bool:
        """Carry out a request; return False where the API refuses it with one of the statuses.

        Raises EngineAway for other refusals: an operator has to change something, and it is tried
        again.
        """
        try:
            await request
        except ApiRefusal as error:
            if error.status not in statuses:
                raise EngineAway(f"{error.status}: {error}") from None
            return False
        return True
