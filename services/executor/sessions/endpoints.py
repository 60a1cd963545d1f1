"""The five requests of an agent, once it is authenticated."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic_ns
from uuid import uuid4

from pydantic import ValidationError

from services.executor.core.agents.hello import action_for, last_generation
from services.executor.core.agents.orders import OrderList, confirmations, orders, poll_wait_s
from services.executor.core.agents.restate import ForeignWorker, NotFolded, restate
from services.executor.core.agents.state import OutputSource, Place
from services.executor.sessions.lane import READ_ERRORS, AgentLane, NodeHeartbeat
from services.executor.sessions.limits import NodeLimits
from services.executor.sessions.refusal import Refused, malformed, unavailable
from services.executor.sessions.registry import Session, Sessions
from services.executor.sessions.secrets import needs_secrets, resolve_secrets
from services.executor.soft import SoftOutbox
from shared.bus.clock import now_ms
from shared.contracts.agents import (
    Acknowledged,
    Heartbeat,
    Hello,
    NodeReport,
    Order,
    Orders,
    OrdersRequest,
    PrintedLines,
    ReportsRequest,
    Stream,
    Welcome,
)
from shared.contracts.node_registry import EnrolledNode
from shared.contracts.reports import IterationTimes, LogLines, Report, TelemetryReported
from shared.ledger.errors import OutcomeUnknown, TooLarge

NOT_READ = "executor: its ledger is not read to the end; try the next one"


class Endpoints:
    """Answers requests of authenticated nodes; raises Refused."""

    def __init__(
        self,
        lanes: Mapping[str, AgentLane],
        sessions: Sessions,
        soft: SoftOutbox,
        executor_id: str,
        secrets: Path | None,
    ) -> None:
        self._lanes = lanes
        self._sessions = sessions
        self._soft = soft
        self._executor_id = executor_id
        self._secrets = secrets
        self.limits = NodeLimits()

    async def hello(self, node: EnrolledNode, message: Hello) -> Welcome:
        """Open a session; an earlier one of the node ends."""
        lane = self._lane(node)
        _check_identity(node, message)
        action = action_for(lane.state, message) if lane.is_fresh() else "behind"
        terms = lane.state.agent_terms()
        if terms is None:
            raise unavailable("starting", f"pool: {lane.pool}; placement does not know it yet")
        applied = Place.of(message.applied)
        session = Session(
            uuid4().hex,
            node.node_id,
            node.pool,
            message.incarnation,
            message.reports_from,
            confirmations(lane.state, node.node_id, applied, message.steps),
        )
        self._sessions.open(session)
        return Welcome(
            session_id=session.session_id,
            last_generation=last_generation(lane.state, node.node_id),
            terms=terms,
            action=action,
        )

    async def heartbeat(self, node: EnrolledNode, message: Heartbeat) -> None:
        """Relay a heartbeat; the answer follows the broker's acknowledgement.

        A fold that is behind does not matter to it, nor does the session's incarnation: placement
        counts the heartbeats of the joined one.
        """
        self._sessions.get(node.node_id, message.session_id)
        heartbeat = NodeHeartbeat(node.node_id, message.incarnation.uuid, message.sent_boot_ms)
        try:
            await self._lane(node).send_heartbeat(heartbeat)
        except OutcomeUnknown:
            raise unavailable("broker_unavailable", "heartbeat: not acknowledged") from None
        except ValidationError as error:
            raise malformed(error) from None

    async def orders(self, node: EnrolledNode, message: OrdersRequest) -> Orders:
        """Wait for orders after a place, at most as long as the agent asks for."""
        session = self._sessions.get(node.node_id, message.session_id)
        lane, after = self._lane(node), Place.of(message.after)
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + poll_wait_s(message.wait_s, session.session_id)
        while True:
            session.wake.clear()
            session.check()
            if not lane.is_fresh() or lane.state.through < after:
                raise unavailable("behind", NOT_READ)
            listed = orders(lane.state, node.node_id, after)
            left_s = ends_s - loop.time()
            if listed.orders or session.confirmations or left_s <= 0:
                return await self._answer(session, listed)
            try:
                async with asyncio.timeout(left_s):
                    await session.wake.wait()
            except TimeoutError:
                continue

    async def reports(self, node: EnrolledNode, message: ReportsRequest, size: int) -> Acknowledged:
        """Relay reports in their order; the answer follows the broker's acknowledgement.

        Reports that are durable already are not relayed again; placement knows repeated ones by
        their allocations.
        """
        session = self._sessions.get(node.node_id, message.session_id)
        self.limits.take_reports(node.node_id, len(message.reports), monotonic_ns())
        async with session.reporting:
            _check_numbers(session, message)
            new = message.reports[session.next_report - message.first_n :]
            lane = self._lane(node)
            try:
                await self._relay(lane, await _restated(lane, node, message, new), size)
            except ForeignWorker as error:
                detail = f"allocation_id: {str(error)!r}; a worker of this node is allowed"
                raise Refused(403, "other_node", detail) from None
            except OutcomeUnknown:
                raise unavailable("broker_unavailable", "reports: not acknowledged") from None
            except READ_ERRORS as error:
                raise unavailable("behind", f"{NOT_READ}: {error!r}") from None
            except ValidationError as error:
                raise malformed(error) from None
            except TooLarge as error:
                raise Refused(413, "too_large", f"reports: {error}; send fewer at once") from None
            session.next_report += len(new)
            return Acknowledged(n=session.next_report - 1)

    async def stream(self, node: EnrolledNode, message: Stream) -> None:
        """Pass on output and telemetry of the node's own workers.

        The end of a worker overtakes its last lines, so those of released ones count too.
        """
        self._sessions.get(node.node_id, message.session_id)
        lane = self._lane(node)
        count = sum(len(printed.lines) for printed in message.printed)
        self.limits.take_lines(node.node_id, count, monotonic_ns())
        for printed in message.printed:
            source = _own_source(lane, node, printed.allocation_id)
            if source is not None:
                self._soft.post(lane.partition, _log_lines(source, printed), source.tenant)
        times = tuple(_times(lane, node, message))
        if times:
            report = TelemetryReported(executor_id=self._executor_id, at=now_ms(), times=times)
            self._soft.post(lane.partition, report)

    def _lane(self, node: EnrolledNode) -> AgentLane:
        lane = self._lanes.get(node.pool)
        if lane is None:
            raise unavailable("pool_not_served", f"pool: {node.pool}; not served here")
        if not lane.caught_up.is_set():
            raise unavailable("starting", f"pool: {node.pool}; its ledger is being read")
        return lane

    async def _relay(self, lane: AgentLane, reports: tuple[Report, ...], size: int) -> None:
        if reports:
            await lane.report(reports, size)

    async def _answer(self, session: Session, listed: OrderList) -> Orders:
        sent, session.confirmations = session.confirmations, []
        new = [await self._with_secrets(order) for order in listed.orders]
        return Orders(orders=(*sent, *new), through=listed.through.position)

    async def _with_secrets(self, order: Order) -> Order:
        if order.launch is None or not needs_secrets(order.launch):
            return order
        launch = await asyncio.to_thread(resolve_secrets, order.launch, self._secrets)
        return order.model_copy(update={"launch": launch})


async def _restated(
    lane: AgentLane, node: EnrolledNode, message: ReportsRequest, new: Sequence[NodeReport]
) -> tuple[Report, ...]:
    """Return the reports for placement; the ledger is read to its end first if one is unknown."""
    incarnation = message.incarnation
    try:
        reports = [restate(lane.state, node.node_id, incarnation, report) for report in new]
    except NotFolded:
        await lane.read_to_end()
        reports = [
            restate(lane.state, node.node_id, incarnation, report, is_complete=True)
            for report in new
        ]
    return tuple(report for report in reports if report is not None)


def _check_identity(node: EnrolledNode, hello: Hello) -> None:
    if hello.node_id != node.node_id:
        detail = f"node_id: {hello.node_id!r}; {node.node_id!r} is allowed by the credential"
        raise Refused(403, "other_node", detail)
    if node.hardware and hello.hardware and hello.hardware != node.hardware:
        detail = "hardware: differs from the machine that joined; revoke the node and join anew"
        raise Refused(403, "machine_changed", detail)


def _check_numbers(session: Session, message: ReportsRequest) -> None:
    if message.incarnation != session.incarnation:
        raise Refused(409, "unknown_session", "incarnation: not the session's; send hello again")
    if message.first_n > session.next_report:
        detail = f"first_n: {message.first_n}; at most {session.next_report} is allowed"
        raise Refused(400, "malformed", detail)


def _own_source(lane: AgentLane, node: EnrolledNode, allocation_id: str) -> OutputSource | None:
    """Return the source; None for an unknown worker. Raises a 403 for another node's."""
    worker = lane.state.workers.get(allocation_id)
    if worker is not None and worker.node_id != node.node_id:
        detail = f"allocation_id: {allocation_id!r}; a worker of this node is allowed"
        raise Refused(403, "other_node", detail)
    return lane.state.source_of(node.node_id, allocation_id)


def _log_lines(source: OutputSource, printed: PrintedLines) -> LogLines:
    return LogLines(
        job_id=source.job_id,
        tenant=source.tenant,
        rank=source.rank,
        attempt=source.attempt,
        first_line=printed.first_line,
        lines=printed.lines,
    )


def _times(lane: AgentLane, node: EnrolledNode, message: Stream) -> list[IterationTimes]:
    return [
        IterationTimes(
            job_id=source.job_id,
            allocation_id=sample.allocation_id,
            node_id=node.node_id,
            rank=source.rank,
            iteration_s=sample.iteration_s,
        )
        for sample in message.iterations
        if (source := _own_source(lane, node, sample.allocation_id)) is not None
    ]
