"""Orders: noted with their position, made durable, and carried out then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from berth_agent.core import orders as rules
from berth_agent.linux import files
from berth_agent.messages import (
    Failure,
    NodeReport,
    Order,
    Orders,
    Position,
    RefusedReport,
    StoppedReport,
)
from berth_agent.node.incarnation_store import IncarnationStore
from berth_agent.node.workers import Workers

Effect = Callable[[], None]


class OrderBook:
    """Used under the agent's lock. Methods raise OSError on a full disk, and take nothing then.

    The file at `path` holds the position up to which orders are carried out, the process that wrote
    the ledger's record there, and the incarnation that carried them out.
    Another incarnation begins at the start of the ledger, which may be that of another pool, or one
    that was restored: it ignores the orders of its predecessors.
    """

    def __init__(
        self,
        path: str,
        incarnations: IncarnationStore,
        workers: Workers,
        report: Callable[[NodeReport], None],
        fence: Callable[[int], None],
        disk_problem: Callable[[], str],
    ) -> None:
        self._path = path
        self._life = incarnations
        self._workers = workers
        self._report = report
        self._fence = fence
        self._disk_problem = disk_problem
        self.applied, self.writer = self._read()
        self.drain_reason = ""
        """Why the node takes no more work; empty: it does."""

    def begin(self) -> None:
        """Forget the position, as a new incarnation has begun."""
        self.applied, self.writer = Position(), ""

    def take(self, answer: Orders, now_ms: int) -> None:
        """Carry out the orders of one answer, oldest first."""
        effects = [effect for order in answer.orders if (effect := self._note(order, now_ms))]
        if rules.is_after(answer.through, self.applied):
            if any(rules.is_after(order.position, self.applied) for order in answer.orders):
                self._write(answer.through, answer.writer)
            elif answer.writer != self.writer:
                # Executors know the latest writers alone, and a node may be without orders for
                # long. Nothing depends on it but that the node is not fenced without need.
                with suppress(OSError):
                    self._write(answer.through, answer.writer)
            self.applied, self.writer = answer.through, answer.writer
        for effect in effects:
            effect()

    def start_alone(self, is_unsent: Callable[[str], bool], now_ms: int) -> None:
        """Start workers of gangs of one as `go` would, once the broker knows that they are ready.

        One that ran before that would be given up after an outage, with its work.
        """
        if self._life.lease.may_run(now_ms):
            self._workers.start_alone(self._life.uuid, is_unsent)

    def _read(self) -> tuple[Position, str]:
        """Return position and writer; a file of older versions names no writer or incarnation."""
        document = files.read_json(self._path)
        if document is None or document.get("incarnation", self._life.uuid) != self._life.uuid:
            return Position(), ""
        return Position.from_json(document), str(document.get("writer", ""))

    def _write(self, applied: Position, writer: str) -> None:
        document = {**applied.to_json(), "writer": writer, "incarnation": self._life.uuid}
        files.write_json(self._path, document)

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
                # Before its position is noted: a stop may be repeated, and must not be lost.
                grace_s = workers.grace_of(name) if order.grace_s is None else order.grace_s
                workers.stop(name, grace_s, "stopped", now_ms)
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
            case "inject" if order.injection is not None:
                injection = order.injection
                return lambda: self._life.inject(injection, now_ms)
        return None

    def _prepare(self, order: Order) -> Effect | None:
        name = order.allocation_id
        failure = self._refusal(order)
        if failure is None:
            self._workers.note_prepare(order)
            return lambda: self._workers.begin(name)
        self._report(RefusedReport(allocation_id=name, failure=failure))
        return None

    def _refusal(self, order: Order) -> Failure | None:
        """Return why the worker cannot be prepared; None if it can, or was before a crash."""
        launch, is_held = order.launch, self._workers.holds(order.allocation_id)
        if launch is None:
            return Failure(reason="malformed_order", detail="prepare: without a launch")
        if launch.failure is not None:
            return launch.failure
        if self.drain_reason:
            detail = f"the node takes no more work: {self.drain_reason}"[:1024]
            return Failure(reason="node_draining", detail=detail)
        if not is_held and (lacking := self._workers.lacking_gpus(launch)):
            # The ledger counts GPUs that are not there until the node registers anew.
            self.drain_reason = f"no_such_gpu: {lacking}"
            return Failure(reason="no_such_gpu", detail=lacking)
        if not is_held and (problem := self._disk_problem()):
            return Failure(reason="disk_full", detail=problem[:1024])
        if not is_held and (problem := self._workers.keep_secrets(order)):
            return Failure(reason="no_memory_folder", detail=problem[:1024])
        return None
