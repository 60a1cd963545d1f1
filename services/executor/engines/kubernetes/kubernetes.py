"""Backend `kubernetes`: a pod per worker, bound to the node that Berth chose."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection
from itertools import chain
from time import monotonic

from services.executor.core.engines.contract import (
    Action,
    EngineState,
    Forbid,
    Forget,
    GangProgress,
    Kill,
    NoteLost,
    Signal,
    Start,
    Submit,
)
from services.executor.core.engines.gangs import EngineGang
from services.executor.core.engines.unrunnable import unsupported
from services.executor.core.kubernetes.gangs import (
    KubernetesGang,
    Pods,
    failed_pods,
    foreign_jobs,
    job_of,
    progress_of,
)
from services.executor.core.kubernetes.manifests import PodOptions
from services.executor.core.kubernetes.names import gang_name
from services.executor.core.kubernetes.nodes import NodeTable
from services.executor.core.kubernetes.pods import PodSeen, pod_of
from services.executor.core.kubernetes.records import OPEN, SELECTOR, STARTED, GangRecord, record_of
from services.executor.engines.engine import EngineAway
from services.executor.engines.kubernetes.adoption import PodAdoption
from services.executor.engines.kubernetes.api import NOT_FOUND, ApiRefusal, KubernetesApi, Row
from services.executor.engines.kubernetes.logs import PodLogs
from services.executor.engines.kubernetes.watched import Watched
from services.executor.engines.kubernetes.writer import GangWriter
from shared.contracts.failures import Failure
from shared.contracts.nodes import Backend

READY_PATH, READY_BYTES = "/readyz", 64
READY_S = 1.0
"""Time for which an answer counts: looks may follow each other closely."""
SHOWN_S = 1.0
"""Longest time after an action until the watches show it; else the next look repeats it."""
SHOWN_STEP_S = 0.02


class KubernetesEngine:
    """`home` is the namespace of Berth's records; `namespace_of` takes a tenant, and returns ""
    where it has none. `nodes` selects the nodes of the pool by their labels."""

    backend: Backend = "kubernetes"

    def __init__(
        self,
        api: KubernetesApi,
        home: str,
        namespace_of: Callable[[str], str],
        options: PodOptions,
        nodes: str = "",
    ) -> None:
        self._api = api
        self._home = home
        self._namespace_of = namespace_of
        self._options = options
        records = f"/apis/coordination.k8s.io/v1/namespaces/{home}/leases"
        self.nodes: Watched[Row] = Watched(api, "/api/v1/nodes", dict, nodes)
        self.pods: Watched[PodSeen] = Watched(api, "/api/v1/pods", pod_of)
        self.records: Watched[GangRecord] = Watched(api, records, record_of, SELECTOR)
        self._node_table = NodeTable(options.tolerations)
        self._logs = PodLogs(api)
        self._ready_s = -math.inf
        self._adoption = PodAdoption(api, records, namespace_of, options.tolerations)
        self._writer = GangWriter(api, records, namespace_of, options)

    async def run(self, changed: Callable[[], None]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for watched in (self.nodes, self.pods, self.records):
                    group.create_task(watched.run())
        finally:
            self._logs.keep(())
            await self._api.close()

    def refusal(self, gang: EngineGang) -> Failure | None:
        tenant = gang.launch.tenant
        if not self._namespace_of(tenant):
            detail = f"tenant {tenant}: no namespace of Kubernetes has this name; set one"
            return unsupported(detail, permanent=True)
        if not (gang.pods or gang.launch.image or self._options.image):
            return unsupported("image: none; Kubernetes runs images alone", permanent=True)
        return None

    async def observe(self, identities: Collection[str]) -> EngineState:
        """Return the content of the watches, once the API has answered.

        A watch may be late. What is written is refused where it was late for that, and a pod counts
        as gone only if a request for it says so.
        """
        for watched in (self.nodes, self.pods, self.records):
            if watched.problem:
                raise EngineAway(watched.problem)
        try:
            if monotonic() - self._ready_s >= READY_S:
                await self._api.read_bytes(READY_PATH, READY_BYTES)
                self._ready_s = monotonic()
            gangs = await self._gangs(identities)
        except ApiRefusal as error:
            raise EngineAway(str(error)) from None
        progress = dict.fromkeys(identities, GangProgress())
        current = [gang for gang in gangs if gang.record.identity in progress]
        outputs = await self._logs.tails(chain.from_iterable(map(failed_pods, current)))
        for gang in current:
            progress[gang.record.identity] = progress_of(gang, outputs)
        pods = self.pods.items.values()
        own = {pod.key for gang in gangs for pod in gang.pods.values()}
        self._logs.keep({pod.uid for pod in pods if pod.key in own})
        unread = {pod.uid for gang in current for pod in failed_pods(gang)} - outputs.keys()
        jobs = (*(job_of(gang, unread) for gang in gangs), *foreign_jobs(pods, own))
        nodes = self._node_table.of(self.nodes.items.values(), pods)
        return EngineState(nodes, jobs, progress, forgets_starts=True)

    async def _gangs(self, identities: Collection[str]) -> list[KubernetesGang]:
        pods = Pods(self.pods.items)
        gangs = []
        for record in list(self.records.items.values()):
            gang = pods.of(record)
            gangs.append(await self._completed(gang) if record.identity in identities else gang)
        return [*gangs, *pods.orphaned(self._record_names())]

    async def _completed(self, gang: KubernetesGang) -> KubernetesGang:
        """Return a gang that is started with its pods that the watch, which may be late, lacks."""
        record = gang.record
        if record.decided != STARTED:
            return gang
        pods = {pod.key: pod for pod in gang.pods.values()}
        for rank in set(range(record.workers)) - gang.pods.keys():
            name = record.pod_of(rank)
            try:
                row = await self._api.read(f"/api/v1/namespaces/{record.namespace}/pods/{name}")
            except ApiRefusal as error:
                if error.status != NOT_FOUND:
                    raise
                continue
            pod = pod_of(row)
            pods[pod.key] = pod
        return Pods(pods).of(record)

    async def act(self, action: Action) -> Failure | None:
        if isinstance(action, Submit | Start):
            self._logs.let_wait()
        match action:
            case Submit(gang=gang):
                return await self._submit(gang)
            case Start(gang=gang, ref=ref):
                await self._writer.start(gang, self._gang(ref))
                await self._until_shown(gang.identity, _is_started)
            case Forbid(identity=identity):
                await self._writer.forbid(identity, self._gang(gang_name(identity)))
            case NoteLost(gang=gang):
                await self._writer.note_lost(gang, self._gang(gang_name(gang.identity)))
            case Signal(ref=ref, grace_s=grace_s):
                await self._writer.end(await self._whole_gang(ref), grace_s)
            case Kill(ref=ref):
                await self._writer.end(await self._whole_gang(ref), 0.0)
            case Forget(ref=ref):
                await self._writer.forget(await self._whole_gang(ref))
        return None

    async def _submit(self, gang: EngineGang) -> Failure | None:
        seen = self._gang(gang_name(gang.identity))
        failure = self.refusal(gang)
        if failure is None and gang.pods:
            failure = await self._adoption.adopt(gang, self.pods.items, seen)
        elif failure is None:
            failure = await self._writer.submit(gang, seen)
        if failure is None:
            await self._until_shown(gang.identity, _is_submitted)
        return failure

    async def _until_shown(self, identity: str, is_done: Callable[[KubernetesGang], bool]) -> None:
        """Return once the watches show a gang as it was left, at the latest after `SHOWN_S`.

        A look before that would do the same again, and each request of it be refused.
        """
        key = self._home, gang_name(identity)
        ends_s = monotonic() + SHOWN_S
        while monotonic() < ends_s:
            record = self.records.items.get(key)
            if record is not None and is_done(Pods(self.pods.items).of(record)):
                return
            await asyncio.sleep(SHOWN_STEP_S)

    async def _whole_gang(self, ref: str) -> KubernetesGang | None:
        gang = self._gang(ref)
        return None if gang is None else await self._completed(gang)

    def _gang(self, ref: str) -> KubernetesGang | None:
        """Return a gang as the watches show it, None if there is neither record nor pod of it."""
        record, pods = self.records.items.get((self._home, ref)), Pods(self.pods.items)
        if record is not None:
            return pods.of(record)
        orphaned = pods.orphaned(self._record_names())
        return next((gang for gang in orphaned if gang.record.name == ref), None)

    def _record_names(self) -> frozenset[str]:
        return frozenset(name for _, name in self.records.items)

    async def read_output(self, identity: str, rank: int, offset: int) -> bytes | None:
        gang = self._gang(gang_name(identity))
        pod = gang.pods.get(rank) if gang is not None else None
        return b"" if pod is None else self._logs.read(pod, offset)


def _is_submitted(shown: KubernetesGang) -> bool:
    return shown.is_whole or shown.record.decided != OPEN


def _is_started(shown: KubernetesGang) -> bool:
    return shown.record.decided != OPEN and not shown.unbound
