"""The requests of an agent, once it is authenticated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import uuid4

from pydantic import ValidationError

from services.executor.agents.answers import OrderAnswers
from services.executor.agents.bundles import Bundles
from services.executor.agents.lane import READ_ERRORS, AgentLane
from services.executor.agents.lane_relays import NodeHeartbeat
from services.executor.agents.limits import NodeLimits
from services.executor.agents.output import (
    iteration_times,
    log_lines_of,
    measured_nodes,
    other_node,
    own_source,
)
from services.executor.agents.problems import post_problems
from services.executor.agents.refusal import Refused, malformed, unavailable
from services.executor.agents.sessions import Origin, Session, Sessions, live_for_s
from services.executor.agents.soft_reports import CheckpointLimiter, ProgressLimiter
from services.executor.core.agents.hello import (
    Action,
    action_for,
    generation_fault,
    is_joined,
    last_generation,
)
from services.executor.core.agents.orders import confirmations, orders, poll_wait_s
from services.executor.core.agents.restate import ForeignWorker, NotFolded, restate
from services.executor.core.agents.state import OrderPosition
from services.executor.soft_outbox import SoftOutbox
from shared.bus.clock import now_ms
from shared.contracts.agents import (
    Acknowledged,
    BundleManifest,
    BundlePartRequest,
    BundleRequest,
    Heartbeat,
    Hello,
    NodeReport,
    Orders,
    OrdersRequest,
    ReportsRequest,
    Stream,
    Welcome,
)
from shared.contracts.node_registry import EnrolledNode
from shared.contracts.reports import Report, TelemetryReported
from shared.ledger.errors import OutcomeUnknown, TooLarge

NOT_READ = "executor: its ledger is not read to the end; try the next one"


class AgentRequests:
    """Answers requests of authenticated nodes; raises Refused."""

    def __init__(
        self,
        lanes: Mapping[str, AgentLane],
        sessions: Sessions,
        soft: SoftOutbox,
        executor_id: str,
        answers: OrderAnswers,
        executors: tuple[str, ...],
        installation: Callable[[], str],
        bundles: Bundles,
    ) -> None:
        self._lanes = lanes
        self._sessions = sessions
        self._soft = soft
        self._executor_id = executor_id
        self._answers = answers
        self._executors = executors
        self._installation = installation
        self._bundles = bundles
        self.limits = NodeLimits()
        self._checkpoints, self._progress = CheckpointLimiter(), ProgressLimiter()

    async def hello(self, node: EnrolledNode, message: Hello, address: str) -> Welcome:
        """Open a session for the agent at this address; an earlier one of the node ends.

        One of a joined incarnation is refused as a copy only where the other has the same one.
        """
        lane = self._lane(node)
        _check_identity(node, message)
        action = await _action(lane, message)
        if fault := generation_fault(lane.state, message):
            raise Refused(403, "generation_too_high", fault)
        terms = lane.state.agent_terms()
        if terms is None:
            raise unavailable("starting", f"pool: {lane.pool}; placement does not know it yet")
        origin, live_s = Origin.of(message, address), live_for_s(terms.heartbeat_s)
        joined = message.incarnation if is_joined(lane.state, message) else None
        self._sessions.check_origin(node.node_id, origin, live_s, joined)
        applied = OrderPosition.of(message.applied)
        session = Session(
            uuid4().hex,
            node.node_id,
            node.pool,
            message.incarnation,
            message.reports_from,
            confirmations(lane.state, node.node_id, applied, message.steps),
            version=message.version,
            origin=origin,
            injects=message.injects,
            keeps_secrets=message.keeps_secrets,
            opens_terminals=message.terminals,
            takes_bundles=message.bundles,
        )
        self._sessions.open(session)
        return Welcome(
            session_id=session.session_id,
            last_generation=last_generation(lane.state, node.node_id),
            terms=terms,
            action=action,
            executors=self._executors,
            installation=self._installation(),
        )

    async def heartbeat(self, node: EnrolledNode, message: Heartbeat) -> None:
        """Relay a heartbeat; the answer follows the broker's acknowledgement.

        A fold that is behind does not matter to it, nor does the session's incarnation: placement
        counts the heartbeats of the joined one.
        """
        session = self._sessions.get(node.node_id, message.session_id)
        heartbeat = NodeHeartbeat(node.node_id, message.incarnation.uuid, message.sent_boot_ms)
        try:
            await self._lane(node).relays.heartbeats.put(heartbeat)
        except OutcomeUnknown:
            raise unavailable("broker_unavailable", "heartbeat: not acknowledged") from None
        except ValidationError as error:
            raise malformed(error) from None
        post_problems(self._lanes[node.pool], self._sessions, session, message)

    async def orders(self, node: EnrolledNode, message: OrdersRequest) -> Orders:
        """Wait for orders after a position, at most as long as the agent requests."""
        session = self._sessions.get(node.node_id, message.session_id)
        lane, after = self._lane(node), OrderPosition.of(message.after)
        session.note_request(after)
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + poll_wait_s(message.wait_s, session.session_id)
        while True:
            session.wake.clear()
            session.check()
            if not lane.is_fresh() or lane.state.through < after:
                raise unavailable("behind", NOT_READ)
            listed = orders(lane.state, node.node_id, after, session.room())
            left_s = ends_s - loop.time()
            if listed.orders or session.confirmations or session.terminals or left_s <= 0:
                sent = session.take_confirmations(after)
                return await self._answers.answer(
                    session, sent, lane.state, listed, lane.ledger_ms()
                )
            try:
                async with asyncio.timeout(left_s):
                    await session.wake.wait()
            except TimeoutError:
                continue

    async def reports(
        self, node: EnrolledNode, message: ReportsRequest, size_bytes: int
    ) -> Acknowledged:
        """Relay reports in their order; the answer follows the broker's acknowledgement.

        Reports that are durable already are not relayed again; placement knows repeated ones by
        their allocations.
        """
        session = self._sessions.get(node.node_id, message.session_id)
        await self.limits.reports.take(node.node_id, len(message.reports))
        async with session.reporting:
            _check_numbers(session, message)
            new = message.reports[session.next_report - message.first_n :]
            lane = self._lane(node)
            try:
                if restated := await _restated(lane, node, message, new):
                    await lane.relays.reports.put(restated, size_bytes, len(restated))
            except ForeignWorker as error:
                raise other_node(error) from None
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
        """Pass on output, telemetry, checkpoints and progress of the node's own workers.

        The end of a worker overtakes its last lines, so those of released ones count too.
        """
        session = self._sessions.get(node.node_id, message.session_id)
        lane = self._lane(node)
        count = sum(len(printed.lines) for printed in message.printed)
        await self.limits.lines.take(node.node_id, count)
        for printed in message.printed:
            source = own_source(lane, node, printed.allocation_id)
            if source is not None:
                self._soft.post(lane.partition, log_lines_of(source, printed), source.tenant)
        try:
            checkpoints = self._checkpoints.take(lane.state, session, message.checkpoints)
            progress = self._progress.take(lane.state, session, message.progress)
        except ForeignWorker as error:
            raise other_node(error) from None
        lane.relays.checkpoints.post(checkpoints, len(checkpoints))
        lane.relays.progress.post(progress, len(progress))
        try:
            times = tuple(iteration_times(lane, node, message))
        except ValidationError as error:
            raise malformed(error) from None
        nodes = measured_nodes(lane, node, message)
        if times or nodes:
            report = TelemetryReported(
                executor_id=self._executor_id, at=now_ms(), times=times, nodes=nodes
            )
            self._soft.post(lane.partition, report)

    async def bundle(self, node: EnrolledNode, message: BundleRequest) -> BundleManifest:
        """Return the manifest of the bundle of a worker of the node."""
        self._sessions.get(node.node_id, message.session_id)
        return await self._bundles.manifest(self._lane(node), node, message.allocation_id)

    @asynccontextmanager
    async def part(self, node: EnrolledNode, message: BundlePartRequest) -> AsyncIterator[bytes]:
        """Yield one part of a bundle, in JSON; it has its place in memory until the block ends."""
        self._sessions.get(node.node_id, message.session_id)
        lane = self._lane(node)
        await self.limits.part_bytes.take(node.node_id, 0)
        async with self.limits.parts.taken(node.node_id):
            part = await self._bundles.part(lane, node, message.allocation_id, message.index)
            self.limits.part_bytes.spend(node.node_id, len(part))
            yield part

    def _lane(self, node: EnrolledNode) -> AgentLane:
        lane = self._lanes.get(node.pool)
        if lane is None:
            raise unavailable("pool_not_served", f"pool: {node.pool}; not served here")
        if not lane.caught_up.is_set():
            raise unavailable("starting", f"pool: {node.pool}; its ledger is being read")
        return lane


async def _action(lane: AgentLane, hello: Hello) -> Action:
    """Return what the agent does next; a ledger that seems to be behind is read to its end."""
    if not lane.is_fresh():
        return "behind"
    action = action_for(lane.state, hello)
    if action != "behind":
        return action
    try:
        await lane.read_to_end()
    except READ_ERRORS:
        return "behind"
    return action_for(lane.state, hello, is_complete=True)


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
    known = (hello.hardware, *hello.former_hardware)
    if node.hardware and hello.hardware and node.hardware not in known:
        detail = "hardware: differs from the machine that enrolled; revoke the node and join anew"
        raise Refused(403, "machine_changed", detail)


def _check_numbers(session: Session, message: ReportsRequest) -> None:
    if message.incarnation != session.incarnation:
        raise Refused(409, "unknown_session", "incarnation: not the session's; send hello again")
    if message.first_n > session.next_report:
        detail = f"first_n: {message.first_n}; at most {session.next_report} is allowed"
        raise Refused(400, "malformed", detail)
