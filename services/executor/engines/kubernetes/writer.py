"""Writes to the API for a gang: each may be repeated, by this executor or by another one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from services.executor.core.engines.gangs import EngineGang
from services.executor.core.kubernetes.gangs import KubernetesGang
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
    OPEN,
    STARTED,
    GangRecord,
    record_manifest,
)
from services.executor.engines.engine import EngineAway
from services.executor.engines.kubernetes.api import ApiRefusal, KubernetesApi, Row
from shared.contracts.failures import Failure

AT_ONCE = 16
"""Requests of one gang in flight."""
NOT_FOUND, CONFLICT, INVALID = 404, 409, 422


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

    async def submit(self, gang: EngineGang) -> Failure | None:
        """Create the record of a gang, and its pods, which are bound to no node yet."""
        namespace = self._namespace_of(gang.launch.tenant)
        workers = gang.launch.world_size
        try:
            manifest = record_manifest(gang.identity, namespace, workers, OPEN)
            await self._ensure(self._records, manifest)
            await self._create_pods(gang, namespace)
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
        created = await self._ensure(f"{core}/pods", pod)
        name = pod_name(gang_name(gang.identity), first.launch.rank)
        if created is None:
            created = await self._api.read(f"{core}/pods/{name}")
        owner = owner_reference(name, str(created["metadata"]["uid"]))
        if needs_service(gang, self._options):
            await self._ensure(f"{core}/services", service_manifest(gang, owner))
        await _together(
            self._ensure(
                f"{core}/pods", pod_manifest(gang, worker, namespace, self._options, owner)
            )
            for worker in others
        )

    async def _ensure(self, path: str, manifest: Row) -> Row | None:
        """Create an object; return None if one of its name is there already."""
        try:
            return await self._api.create(path, manifest)
        except ApiRefusal as error:
            if error.reason != "AlreadyExists":
                raise
            return None

    async def start(self, gang: EngineGang, seen: KubernetesGang | None) -> None:
        """Decide that the gang starts, and bind its pods; without effect if it was forbidden."""
        if seen is None or not await self._decide(seen.record, STARTED):
            return
        nodes = {worker.launch.rank: worker.node_id for worker in gang.workers}
        await _together(
            self._bind(pod, nodes[rank])
            for rank, pod in seen.pods.items()
            if not pod.node and not pod.is_over
        )

    async def _bind(self, pod: PodSeen, node: str) -> None:
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding"
        await self._ignoring(
            self._api.create(path, binding_manifest(pod.name, pod.uid, node)), NOT_FOUND, CONFLICT
        )

    async def forbid(self, identity: str, seen: KubernetesGang | None) -> None:
        """Decide that the gang never starts; without effect if it has."""
        if seen is not None:
            await self._decide(seen.record, FORBIDDEN)
            return
        manifest = record_manifest(identity, "", 0, FORBIDDEN)
        await self._ignoring(self._ensure(self._records, manifest))

    async def _decide(self, record: GangRecord, decided: str) -> bool:
        """Write a decision once; return whether that is the decision. Raises EngineAway."""
        if record.decided != OPEN:
            return record.decided == decided
        manifest = record_manifest(
            record.identity, record.namespace, record.workers, decided, record.version
        )
        return await self._ignoring(
            self._api.replace(f"{self._records}/{record.name}", manifest), NOT_FOUND, CONFLICT
        )

    async def end(self, seen: KubernetesGang | None, grace_s: float) -> None:
        """Delete the pods of a gang: SIGTERM now, SIGKILL after the grace."""
        if seen is None:
            return
        is_over = seen.record.decided == FORBIDDEN
        await _together(
            self._remove(pod) if is_over else self._delete(pod, grace_s)
            for pod in seen.pods.values()
            if is_over or not pod.is_over
        )

    async def forget(self, seen: KubernetesGang | None) -> None:
        """Remove the pods of a gang that is over, and then its record; else end what lives."""
        if seen is None:
            return
        if seen.living:
            await self.end(seen, 0.0)
            return
        await _together(self._remove(pod) for pod in seen.pods.values())
        path = f"{self._records}/{seen.record.name}"
        options = {"preconditions": {"resourceVersion": seen.record.version}}
        await self._ignoring(self._api.delete(path, options), NOT_FOUND, CONFLICT)

    async def _delete(self, pod: PodSeen, grace_s: float) -> None:
        """Have the kubelet end a pod, whose object stays; a mark says that Berth did so."""
        path = _path(pod)
        if not pod.is_deleted:
            mark = {"metadata": {"uid": pod.uid, "annotations": {ENDED: "true"}}}
            await self._ignoring(self._api.patch(path, mark), NOT_FOUND, CONFLICT)
        options = {"gracePeriodSeconds": grace_seconds(grace_s), "preconditions": {"uid": pod.uid}}
        await self._ignoring(self._api.delete(path, options), NOT_FOUND, CONFLICT)

    async def _remove(self, pod: PodSeen) -> None:
        """Remove a pod of which nothing runs, with its object."""
        path = _path(pod)
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


def _path(pod: PodSeen) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


async def _together(requests: Iterable[Awaitable[object]]) -> None:
    """Carry out requests, a few at a time; raise the first error once all are through."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(request: Awaitable[object]) -> None:
        async with limit:
            await request

    outcomes = await asyncio.gather(*map(one, requests), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
