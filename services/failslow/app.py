"""Fail-slow's shell: the decider under the common host, and a reader of iteration times."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from time import monotonic

from pydantic import ValidationError

from services.failslow.core.decide import FailSlow
from services.failslow.core.measures.peers import Thresholds
from services.failslow.core.state import FailSlowState
from services.failslow.core.suspicion.evidence import Evidence
from services.failslow.core.suspicion.pace import JobPaces
from services.failslow.core.suspicion.validations import Validations
from services.failslow.figures import figures
from services.failslow.settings import FailSlowSettings
from services.failslow.validation_job import (
    cancellation,
    due_cancels,
    due_validations,
    encoded,
    submission,
)
from shared.bus.archive.opening import with_archive
from shared.bus.clock import now_ms
from shared.bus.hosting.host import run_service
from shared.bus.hosting.probe import probe_lanes
from shared.bus.lane.lane import Lane
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.log import Entry, Log
from shared.bus.logs.tail import TopicTail
from shared.contracts.job_commands import CancelJob, SubmitJob
from shared.contracts.reports import TelemetryReported
from shared.ledger import cloudevents
from shared.ledger.errors import Forbidden, OutcomeUnknown
from shared.ledger.partition import TP
from shared.telemetry.metrics import Metrics
from shared.telemetry.setup import start_telemetry
from shared.telemetry.shell import observer, serve_metrics

TELEMETRY, COMMANDS = "telemetry", "commands"
SUBMIT_AGAIN_S = 10.0

logger = logging.getLogger(__name__)


def run(settings: FailSlowSettings) -> None:
    """Serve until SIGTERM."""
    telemetry = start_telemetry("failslow", settings)
    follower = Follower(
        lambda: with_archive(
            KafkaLog(settings.connection, client="berth-failslow"), settings.archive
        ),
        settings.limits,
        telemetry.metrics,
    )
    serve_metrics(telemetry, settings, "failslow")

    async def follow(lane: Lane[FailSlowState]) -> None:
        for job_id, gang in lane.state.gangs.items():
            telemetry.spans.remember_job(job_id, gang.traceparent)
        await follower.follow(lane)

    try:
        run_service(
            FailSlow(settings.limits),
            settings=settings,
            on_accepted=observer(telemetry),
            on_lane=follow,
            background=lambda lanes: probe_lanes(lanes, telemetry.metrics, figures),
        )
    finally:
        telemetry.spans.shutdown()


class Follower:
    """Offers each lane the iteration times that may change a verdict."""

    def __init__(self, connect: Callable[[], Log], limits: Thresholds, metrics: Metrics) -> None:
        self._connect = connect
        self._limits = limits
        self._metrics = metrics

    async def follow(self, lane: Lane[FailSlowState]) -> None:
        """Read new telemetry while the lane is held; older telemetry is not needed."""
        evidence, paces, validations = Evidence(self._limits), JobPaces(), Validations()
        tail, commands = TopicTail(self._connect(), lossy=True), self._connect()
        submitted = Submissions(commands, lane.partition)
        try:
            await tail.start_at_end([TP(TELEMETRY, lane.partition)])
            while True:
                for entries in (await tail.poll()).values():
                    for report in self._reports(entries):
                        for collector in (evidence, paces, validations):
                            collector.add(report, lane.state.gangs)
                for message in evidence.take_news(lane.state):
                    await lane.offer(message)
                for change in paces.take_changes(lane.state):
                    await lane.offer(change)
                for settled in paces.take_settled():
                    await lane.offer(settled)
                for measured in validations.take_ended(lane.state):
                    await lane.offer(measured)
                await submitted.submit(lane.state)
        finally:
            await tail.stop()
            await commands.stop()

    def _reports(self, entries: list[Entry]) -> Iterator[TelemetryReported]:
        for entry in entries:
            report = decode_telemetry(entry.value)
            if report is None:
                self._metrics.ignored_records.labels("undecodable").inc()
            else:
                yield report


class Submissions:
    """Appends jobs that measure nodes, and their cancels, to `commands`: each once per start.

    An append of which the outcome is unknown is repeated: admission knows a job by its id.
    """

    def __init__(self, log: Log, lane: int) -> None:
        self._log = log
        self._tp = TP(COMMANDS, lane)
        self._sent: set[str] = set()
        self._pause_until_s = 0.0

    async def submit(self, state: FailSlowState) -> None:
        """Append what is due: jobs that measure, and the cancels of those that were not needed."""
        now = now_ms()
        for job_id, own in due_validations(state, now).items():
            await self._send(state, job_id, submission(state, job_id, own))
        for job_id, own in due_cancels(state, now).items():
            await self._send(state, f"cancel/{job_id}", cancellation(job_id, own))

    async def _send(self, state: FailSlowState, key: str, command: SubmitJob | CancelJob) -> None:
        if key in self._sent or monotonic() < self._pause_until_s:
            return
        try:
            await self._log.append(self._tp, encoded(command, state.name, now_ms()))
        except (OutcomeUnknown, Forbidden) as error:
            logger.warning("%s of %s is not sent: %s", command.TYPE, command.job_id, error)
            self._pause_until_s = monotonic() + SUBMIT_AGAIN_S
            return
        self._sent.add(key)


def decode_telemetry(value: bytes | None) -> TelemetryReported | None:
    """Return the report; None if malformed, as nothing depends on a soft record."""
    try:
        envelope = cloudevents.decode(value)
        return TelemetryReported.model_validate_json(envelope.body)
    except (cloudevents.Malformed, ValidationError):
        return None
