"""Makes jobs of the pods that users create with `schedulerName: berth`, and writes why they wait.

It submits as the tenant of their namespace does, to `submissions.<tenant>`: rates, bounds and
quotas of the tenant hold, and all that can be done there is to submit and to cancel its jobs.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import monotonic
from typing import Any
from uuid import uuid4

from services.executor.agents.lane import AgentLane
from services.executor.core.kubernetes.pod_groups import PodSubmission
from services.executor.core.kubernetes.pod_intake import (
    Intake,
    IntakeLook,
    IntakeMemory,
    Message,
    PodCancel,
    TenantPods,
    take_in,
)
from services.executor.core.kubernetes.pod_jobs import PodJob
from services.executor.core.kubernetes.pod_messages import condition_change, event_manifest
from services.executor.core.kubernetes.pods import PodSeen
from services.executor.engines.engine import EngineAway
from services.executor.engines.kubernetes.adoption import path_of
from services.executor.engines.kubernetes.api import (
    CONFLICT,
    NOT_FOUND,
    STRATEGIC,
    ApiRefusal,
    KubernetesApi,
)
from services.executor.engines.kubernetes.pod_ledgers import PodLedger, pod_ledgers
from services.executor.engines.kubernetes.together import together
from services.executor.engines.kubernetes.watched import Watched
from services.executor.settings import ExecutorSettings
from shared.bus.clock import now_ms
from shared.bus.logs.log import Log
from shared.contracts.job_commands import CancelJob, SubmitJob
from shared.contracts.job_spec import PODS_FROM
from shared.contracts.registry import AccessView
from shared.contracts.topics import submissions
from shared.ledger import cloudevents
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from shared.telemetry.metrics import Metrics

SOURCE = "/berth/executor/kubernetes"
GATHER_S = 0.1
"""Time from the first change of pods to the look at it: pods of a gang are created together."""

log = logging.getLogger(__name__)


class PodIntake:
    """Looks at the pods of all tenants of the pool when some change, and as often as the engine is
    looked at.

    Jobs are sent all at once, and messages beside the looks: neither holds up the next gang.
    """

    def __init__(
        self,
        settings: ExecutorSettings,
        api: KubernetesApi,
        pods: Watched[PodSeen],
        connect: Callable[[], Log],
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._api = api
        self._pods = pods
        self._connect = connect
        self._metrics = metrics
        self._memory = IntakeMemory()
        self._wake = asyncio.Event()
        self._posting: asyncio.Task[None] | None = None
        pods.on_change = self._note

    def _note(self, pod: PodSeen) -> None:
        """Have a pod looked at soon that waits for Berth, or that its user may have deleted."""
        if pod.request is not None and (pod.is_deleted or not pod.identity):
            self._wake.set()

    async def run(self, lane: AgentLane, view: Callable[[], AccessView]) -> None:
        """Serve until cancelled."""
        ledgers = pod_ledgers(self._settings, lane.partition, self._connect, self._metrics)
        to_tenants = self._connect()
        try:
            async with asyncio.TaskGroup() as group:
                for ledger in ledgers:
                    group.create_task(ledger.run())
                for ready in (lane.caught_up, *(ledger.caught_up for ledger in ledgers)):
                    await ready.wait()
                while True:
                    self._wake.clear()
                    is_read = lane.is_fresh() and not self._pods.problem
                    # Admission of an earlier release would reject such jobs for good.
                    if is_read and lane.state.release >= PODS_FROM:
                        intake = take_in(self._look(lane, view(), *ledgers))
                        if self._posting is None or self._posting.done():
                            self._posting = group.create_task(self._post_all(intake.messages))
                        await self._send(intake, lane.pool, to_tenants)
                    await self._pause()
        finally:
            await to_tenants.stop()

    async def _pause(self) -> None:
        """Return a moment after a pod has changed, at the latest when the next look is due."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.engine_poll_s):
                await self._wake.wait()
                await asyncio.sleep(GATHER_S)

    def _look(
        self, lane: AgentLane, view: AccessView, admission: PodLedger, placement: PodLedger
    ) -> IntakeLook:
        jobs = lane.state.jobs.items()
        return IntakeLook(
            pool=lane.pool,
            time_scale=lane.state.time_scale,
            tenants=self._tenants(view, lane.pool),
            pods=tuple(pod for pod in self._pods.items.values() if pod.request is not None),
            placed={
                job_id: PodJob(job.tenant, job.spec.pods, "")
                for job_id, job in jobs
                if job.spec.pods
            },
            working=frozenset(lane.state.of_job),
            admission=admission.state,
            placement=placement.state,
            memory=self._memory,
            now_s=monotonic(),
        )

    def _tenants(self, view: AccessView, pool: str) -> dict[str, TenantPods]:
        """Return the tenants by namespace, without those that several share."""
        sharing: dict[str, list[TenantPods]] = {}
        for tenant in view.active_tenants:
            is_default = view.tenants[tenant].default_pool == pool
            namespace = self._settings.kubernetes_namespace_of(tenant)
            if namespace and view.pools[pool].is_open_to(tenant):
                sharing.setdefault(namespace, []).append(TenantPods(tenant, is_default))
        return {name: tenants[0] for name, tenants in sharing.items() if len(tenants) == 1}

    async def _send(self, intake: Intake, pool: str, to_tenants: Log) -> None:
        """Send submissions and cancels, each of which may be sent again."""
        submissions = (self._submit(one, to_tenants) for one in intake.submissions)
        cancels = (self._cancel(one, pool, to_tenants) for one in intake.cancels)
        await asyncio.gather(*submissions, *cancels)

    async def _submit(self, submission: PodSubmission, to_tenants: Log) -> None:
        if await _is_appended(to_tenants, *_submission_record(submission)):
            job = PodJob(submission.tenant, submission.spec.pods or (), "it is submitted")
            self._memory.submitted[submission.job_id] = job, monotonic()
            log.info("pods submitted", extra={"job": submission.job_id})

    async def _cancel(self, cancel: PodCancel, pool: str, to_tenants: Log) -> None:
        if await _is_appended(to_tenants, *_cancel_record(cancel, pool)):
            self._memory.cancelled_s[cancel.job_id] = monotonic()

    async def _post_all(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._memory.posted_s[message.pods[0].uid] = monotonic()
            try:
                waiting = filter(self._waits, message.pods)
                await together(self._post(pod, message) for pod in waiting)
            except (ApiRefusal, EngineAway) as error:
                log.warning("message not posted", extra={"reason": str(error)})

    def _waits(self, pod: PodSeen) -> bool:
        """Return whether a pod still has no node, as messages before its own may take a while."""
        present = self._pods.items.get(pod.key)
        return present is not None and not (present.identity or present.node)

    async def _post(self, pod: PodSeen, message: Message) -> None:
        """Write the condition of a pod, and an event about it."""
        at_ms = now_ms()
        try:
            change = condition_change(pod, message.text, at_ms)
            await self._api.patch(f"{path_of(pod)}/status", change, STRATEGIC)
            path = f"/api/v1/namespaces/{pod.namespace}/events"
            await self._api.create(path, event_manifest(pod, message.text, at_ms))
        except ApiRefusal as error:
            if error.status not in (NOT_FOUND, CONFLICT):
                raise


async def _is_appended(to_tenants: Log, tp: TP, record: bytes) -> bool:
    """Append a record; return whether the broker has acknowledged it."""
    try:
        await to_tenants.append(tp, record)
    except OutcomeUnknown as error:
        log.warning("pods not submitted", extra={"reason": str(error)})
        return False
    return True


def _submission_record(submission: PodSubmission) -> tuple[TP, bytes]:
    body: dict[str, Any] = {
        "pool": submission.pool,
        "idempotency_key": submission.key,
        "spec": submission.spec.model_dump(mode="json", exclude_defaults=True),
    }
    return _record(submission.tenant, submission.key, SubmitJob.TYPE, body)


def _cancel_record(cancel: PodCancel, pool: str) -> tuple[TP, bytes]:
    body = {"job_id": cancel.job_id, "pool": pool, "reason": cancel.reason}
    return _record(cancel.tenant, uuid4().hex, CancelJob.TYPE, body)


def _record(tenant: str, id: str, type: str, body: dict[str, Any]) -> tuple[TP, bytes]:
    """Return a record as the tenant would send it, and its place."""
    data = json.dumps(body).encode()
    record = cloudevents.encode(id=id, source=SOURCE, type=type, data=data, at_ms=now_ms())
    return TP(submissions(tenant).name, 0), record
