"""The agent between executor and steps: one lock, files first, then effects."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Literal

from berth_agent import VERSION
from berth_agent.core.drain import Drain
from berth_agent.linux import processes
from berth_agent.linux.clocks import boot_ms
from berth_agent.messages import (
    Failure,
    Heartbeat,
    Hello,
    Incarnation,
    LeavingReport,
    NodeReport,
    Orders,
    RefusedReport,
    RegistrationReport,
    TermsAppliedReport,
    Welcome,
)
from berth_agent.node.allocation import AllocationFolder
from berth_agent.node.config import Config
from berth_agent.node.life import NodeLife
from berth_agent.node.order_book import OrderBook
from berth_agent.node.outbox import Outbox
from berth_agent.node.workers import Workers

Next = Literal["serve", "again", "behind"]
JOIN_MS = 60_000
"""Time after which a registration that was not joined is made again."""


class Agent:
    """All methods may be called by any thread; those that write files raise OSError."""

    def __init__(
        self,
        config: Config,
        node_id: str,
        life: NodeLife,
        workers: Workers,
        registration: Callable[[], RegistrationReport],
    ) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.life = life
        self.workers = workers
        self.has_left = False
        self.wants_hello = False
        """The session must be opened anew: the incarnation has changed, or is not joined."""
        self.outbox = Outbox(f"{config.state}/outbox")
        self.outbox.open(life.uuid)
        self.book = OrderBook(f"{config.state}/applied", life, workers, self._report, self._fence)
        self._node_id = node_id
        self._registration = registration
        self._wants_registration = False
        self._registered_ms: int | None = None
        self._in_session = False
        self._drain = Drain()
        self._leaving = False

    def hello(self) -> Hello:
        """Return the message that opens a session."""
        with self.lock:
            machine = self.life.machine
            return Hello(
                node_id=self._node_id,
                version=VERSION,
                incarnation=self.life.incarnation,
                boot_id=machine.boot_id,
                pid_namespace=machine.pid_namespace,
                hardware=machine.hardware,
                applied=self.book.applied,
                lapsed=self.life.lease.is_over(boot_ms()),
                terms_id=self.life.lease.terms.terms_id,
                steps=self.workers.states(),
                reports_from=self.outbox.first_n,
            )

    def welcome(self, welcome: Welcome) -> Next:
        """Take the answer to a hello; `again` asks for another one."""
        with self.lock:
            now_ms = boot_ms()
            self.wants_hello = False
            self._in_session = True
            self.life.last_generation = max(self.life.last_generation, welcome.last_generation)
            if welcome.action == "behind":
                return "behind"
            if self.life.lease.is_over(now_ms):
                self.life.terms = welcome.terms
                self._renew_incarnation(now_ms)
                return "again" if self.wants_hello else "serve"
            return self._act(welcome, now_ms)

    def session_lost(self) -> None:
        with self.lock:
            self._in_session = False
            self._drain.pause(boot_ms())

    def heartbeat(self, session_id: str) -> Heartbeat | None:
        """Return the next heartbeat, None while there is no lease to extend."""
        with self.lock:
            return self.life.heartbeat(session_id, boot_ms())

    def heartbeat_acknowledged(self, heartbeat: Heartbeat) -> None:
        with self.lock:
            self.life.acknowledge(heartbeat, boot_ms())

    def takes_orders(self) -> bool:
        with self.lock:
            return not self.life.lease.is_over(boot_ms())

    def take_orders(self, answer: Orders) -> None:
        with self.lock:
            self.book.take(answer.orders, answer.through, boot_ms())
            self.changed.notify_all()

    def batch(self) -> tuple[int, tuple[NodeReport, ...]]:
        """Return the number of the first report to send, and the reports."""
        with self.lock:
            first_n, reports = self.outbox.batch()
            lease = self.life.lease
            if lease.is_over(boot_ms()) and not lease.joined:
                # A registration that comes after the deadline would begin what is over.
                return first_n, ()
            if any(isinstance(report, RegistrationReport) for report in reports):
                self.life.begin_lease(boot_ms())
            return first_n, reports

    def shrink_batch(self, incarnation: Incarnation, count: int) -> bool:
        """Make the next batch smaller than one of `count` reports; False where it cannot be."""
        with self.lock:
            return self.life.incarnation != incarnation or self.outbox.shrink(count)

    def acknowledged(self, n: int) -> None:
        """Take the answer to reports."""
        with self.lock:
            self.outbox.acknowledge(n)
            self.outbox.compact(self.life.uuid)
            if self._leaving and self.outbox.is_empty:
                self.life.end_lease()
                self.has_left = True
            self.changed.notify_all()

    def launched(self, allocation: AllocationFolder, failure: Failure | None) -> None:
        """Note the result of a launch, which another thread did."""
        with self.lock:
            allocation.launching = False
            if failure is not None:
                allocation.launch_failure = dict(failure.to_json())

    def drain(self, reason: str) -> None:
        """Take no more work; the node leaves when its last worker has ended."""
        with self.lock:
            self.book.drain_reason = self.book.drain_reason or reason
            if self.life.lease.over or not self.life.lease.begun:
                # It never joined, or left before a restart.
                self.has_left = self.workers.is_clear_of_others("")

    def come_back(self) -> None:
        """Take work again, under a new incarnation if the node has left."""
        with self.lock:
            self.book.drain_reason = ""
            self._leaving = self.has_left = False
            self.changed.notify_all()

    def stop_all(self, longest_s: float = math.inf) -> None:
        """Stop every worker within its grace, at most `longest_s`."""
        with self.lock:
            for allocation in self.workers:
                name = allocation.allocation_id
                grace_s = min(self.workers.grace_of(name), longest_s)
                self.workers.stop(name, grace_s, "stopped", boot_ms())

    def is_clear(self) -> bool:
        """Whether no worker lives, but those that cannot be killed."""
        with self.lock:
            return self.workers.is_clear_of_others("")

    def tick(self) -> None:
        """Do what is due: watch the steps, report, lapse, register, leave."""
        with self.lock:
            now_ms = boot_ms()
            lease = self.life.lease
            is_over = lease.is_over(now_ms)
            deadline_ms = lease.deadline_ms if lease.begun else None
            self.workers.fence(now_ms, None if is_over else self.life.uuid)
            self.workers.scan(now_ms, deadline_ms, lease.may_run(now_ms))
            self._make_reports()
            if is_over:
                self._renew_incarnation(now_ms)
            elif lease.joined:
                self._report_terms(now_ms)
                self._leave(now_ms)
            else:
                self._register(now_ms)
            self.changed.notify_all()

    def _act(self, welcome: Welcome, now_ms: int) -> Next:
        """Go on, register or end the incarnation, as the ledger knows it."""
        lease = self.life.lease
        if welcome.action == "continue" and lease.begun:
            self.life.join()
            self.life.use_terms(welcome.terms)
        elif welcome.action != "register" or lease.joined:
            # Fenced, or the ledger and this folder have different histories.
            self._fence(now_ms)
        elif not self.life.may_register:
            self._begin_incarnation()
            return "again"
        else:
            if not lease.begun:
                self.life.use_terms(welcome.terms)
            self._wants_registration = True
            self._register(now_ms)
        return "serve"

    def _make_reports(self) -> None:
        """Put what is due into the outbox; a repetition after a crash is harmless."""
        for allocation, stage, report in self.workers.due_reports():
            if allocation.order.incarnation == self.life.uuid:
                self._report(report)
                if isinstance(report, RefusedReport) and report.failure.reason == "prolog_failed":
                    self.drain(f"prolog_failed: {report.failure.detail}")
            allocation.note_reported(stage)

    def _report(self, report: NodeReport) -> None:
        self.outbox.add(report)
        self.changed.notify_all()

    def _fence(self, now_ms: int) -> None:
        """End the lease and every worker, whatever the deadline."""
        self.life.end_lease()
        self.workers.fence(now_ms, None)

    def _renew_incarnation(self, now_ms: int) -> None:
        """Begin a new incarnation when nothing lives and the ends are reported."""
        if self.has_left or not self._in_session or not self._is_clear(""):
            return
        self._drain.go_on(now_ms)
        drained = self.outbox.is_empty or not self.life.lease.joined
        if drained or self._drain.is_over(now_ms):
            self._begin_incarnation()

    def _begin_incarnation(self) -> None:
        self.life.begin_next()
        self._drain = Drain()
        self.workers.drop_others(self.life.uuid)
        self.outbox.open(self.life.uuid)
        self._wants_registration = False
        self._registered_ms = None
        self.wants_hello = True

    def _is_clear(self, uuid: str) -> bool:
        """Whether nothing of another incarnation lives; unknown processes of it are killed."""
        if not self.workers.is_clear_of_others(uuid):
            return False
        strays = self.workers.strays()
        processes.kill_each(strays)
        return not strays

    def _register(self, now_ms: int) -> None:
        """Register once nothing of an older incarnation lives; again if it is not joined."""
        if self._wants_registration and self._is_clear(self.life.uuid):
            self.workers.drop_others(self.life.uuid)
            self._wants_registration = False
            self._registered_ms = now_ms
            self._report(self._registration())
        elif self._registered_ms is not None and now_ms - self._registered_ms > JOIN_MS:
            self._registered_ms = now_ms
            self.wants_hello = True

    def _report_terms(self, now_ms: int) -> None:
        lease = self.life.lease
        noted = self.workers.have_noted(lease.terms.terms_id)
        if terms_id := lease.terms_to_report(now_ms, noted):
            self._report(TermsAppliedReport(terms_id=terms_id, sent_boot_ms=now_ms))

    def _leave(self, now_ms: int) -> None:
        """Leave once the last worker ended and its end is acknowledged."""
        may_leave = self.book.drain_reason and not self._leaving and self.outbox.is_empty
        if may_leave and self.workers.is_clear_of_others(""):
            self._leaving = True
            self._report(LeavingReport())
