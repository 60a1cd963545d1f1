"""Orders: noted with their position, made durable, and carried out then."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from berth_agent.core import orders as rules
from berth_agent.linux import files
from berth_agent.messages import Failure, NodeReport, Order, Position, RefusedReport, StoppedReport
from berth_agent.node.life import NodeLife
from berth_agent.node.workers import Workers

Effect = Callable[[], None]


class OrderBook:
    """Used under the agent's lock. Methods raise OSError on a full disk, and take nothing then."""

    def __init__(
        self,
        path: str,
        life: NodeLife,
        workers: Workers,
        report: Callable[[NodeReport], None],
        fence: Callable[[int], None],
    ) -> None:
        self._path = path
        self._life = life
        self._workers = workers
        self._report = report
        self._fence = fence
        document = files.read_json(path)
        self.applied = Position() if document is None else Position.from_json(document)
        self.drain_reason = ""
        """Why the node takes no more work; empty: it does."""

    def take(self, orders: Sequence[Order], through: Position, now_ms: int) -> None:
        """Carry out the orders of one answer, oldest first."""
        effects = [effect for order in orders if (effect := self._note(order, now_ms))]
        applied = self.applied
        for order in orders:
            applied = rules.latest(order.position, applied)
        if applied != self.applied:
            files.write_json(self._path, applied.to_json())
        self.applied = rules.latest(through, applied)
        for effect in effects:
            effect()

    def _note(self, order: Order, now_ms: int) -> Effect | None:
        """Note one order durably; return its effect, which may be repeated after a crash."""
        decision = rules.decide(
            order,
            self._life.uuid,
            self.applied,
            may_run=self._life.lease.may_run(now_ms),
            is_held=self._workers.holds(order.allocation_id),
        )
        match decision:
            case "answer_stopped":
                self._report(StoppedReport(allocation_id=order.allocation_id))
            case "answer_state":
                self._workers.repeat(order.allocation_id)
            case "carry_out" if order.allocation_id:
                return self._for_worker(order, now_ms)
            case "carry_out":
                return self._for_node(order, now_ms)
        return None

    def _for_worker(self, order: Order, now_ms: int) -> Effect | None:
        name, workers = order.allocation_id, self._workers
        match order.kind:
            case "prepare":
                return self._prepare(order)
            case "go":
                workers.note_go(order)
            case "stop":
                grace_s = workers.grace_of(name) if order.grace_s is None else order.grace_s
                return lambda: workers.stop(name, grace_s, "stopped", now_ms)
            case "forget":
                return lambda: workers.forget(name, now_ms)
        return None

    def _for_node(self, order: Order, now_ms: int) -> Effect | None:
        match order.kind:
            case "joined":
                self._life.join()
            case "terms" if order.terms is not None:
                self._life.use_terms(order.terms)
            case "fence":
                return lambda: self._fence(now_ms)
        return None

    def _prepare(self, order: Order) -> Effect | None:
        name = order.allocation_id
        if order.launch is None:
            failure = Failure(reason="malformed_order", detail="prepare: without a launch")
        elif order.launch.failure is not None:
            failure = order.launch.failure
        elif self.drain_reason:
            detail = f"the node takes no more work: {self.drain_reason}"[:1024]
            failure = Failure(reason="node_draining", detail=detail)
        else:
            self._workers.note_prepare(order)
            return lambda: self._workers.begin(name)
        self._report(RefusedReport(allocation_id=name, failure=failure))
        return None
