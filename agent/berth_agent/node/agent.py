"""The agent between executor and steps: one lock, files first, then effects."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from typing import Literal

from berth_agent import VERSION, file_names
from berth_agent.core.incarnation import Machine
from berth_agent.core.last_reports import LastReportsTimer
from berth_agent.linux.clocks import boot_ms
from berth_agent.linux.disk_reserve import DiskReserve, write_on_full_disk
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
from berth_agent.node.config import Config
from berth_agent.node.enforcement import all_of, kill_overdue
from berth_agent.node.files.allocation import AllocationFolder
from berth_agent.node.incarnation_store import IncarnationStore
from berth_agent.node.order_book import OrderBook
from berth_agent.node.outbox import Outbox
from berth_agent.node.registration import Registrar
from berth_agent.node.workers import Workers

ABILITIES = {"injects": True, "keeps_secrets": True, "terminals": True, "bundles": True}
SessionStep = Literal["serve", "again", "behind"]
log = logging.getLogger(__name__)


class Agent:
    """All methods may be called by any thread; those that write files raise OSError."""

    def __init__(
        self,
        config: Config,
        node_id: str,
        incarnations: IncarnationStore,
        workers: Workers,
        registration: Callable[[], RegistrationReport],
        read_machine: Callable[[], Machine],
    ) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.incarnations = incarnations
        self.workers = workers
        self.has_left = False
        self.needs_hello = False
        """The session must be opened anew: the incarnation has changed, or is not joined."""
        self.reserve = DiskReserve(config.reserve_path, round(config.reserve_mib * 2**20))
        self.outbox = Outbox(f"{config.state}/{file_names.OUTBOX}")
        self.outbox.open(incarnations.uuid)
        self.book = OrderBook(
            f"{config.state}/applied",
            incarnations,
            workers,
            self._report,
            self._fence,
            self.reserve.problem,
        )
        self._node_id = node_id
        self._registrar = Registrar(workers, registration)
        self._read_machine = read_machine
        self._in_session = False
        self._last_reports = LastReportsTimer()
        self._leaving = False

    def hello(self) -> Hello:
        """Return the message that opens a session, of the machine as it is now. Raises OSError."""
        machine = self._read_machine()
        with self.lock:
            self.incarnations.machine = machine
            return Hello(
                node_id=self._node_id,
                version=VERSION,
                incarnation=self.incarnations.incarnation,
                boot_id=machine.boot_id,
                pid_namespace=machine.pid_namespace,
                hardware=machine.hardware,
                former_hardware=machine.former_hardware,
                applied=self.book.applied,
                writer=self.book.writer,
                lapsed=self.incarnations.lease.is_over(boot_ms()),
                terms_id=self.incarnations.lease.terms.terms_id,
                steps=self.workers.states(),
                reports_from=self.outbox.first_n,
                **ABILITIES,
                process=self.incarnations.process,
                network_namespace=machine.network_namespace,
            )

    def welcome(self, welcome: Welcome) -> SessionStep:
        """Take the answer to a hello; `again` requires another one."""
        with self.lock:
            now_ms = boot_ms()
            self.needs_hello, self._in_session = False, True
            self.incarnations.note_generation(welcome.last_generation)
            if welcome.action == "behind":
                return "behind"
            if self.incarnations.lease.is_over(now_ms):
                self.incarnations.terms = welcome.terms
                self._renew_incarnation(now_ms)
                return "again" if self.needs_hello else "serve"
            return self._act(welcome, now_ms)

    def session_lost(self) -> None:
        with self.lock:
            self._in_session = False
            self._last_reports.pause(boot_ms())

    def heartbeat(self, session_id: str) -> Heartbeat | None:
        """Return the next heartbeat, None while there is no lease to extend."""
        with self.lock:
            return self.incarnations.heartbeat(session_id, boot_ms(), self.reserve.problem())

    def heartbeat_acknowledged(self, heartbeat: Heartbeat) -> None:
        with self.lock:
            self.incarnations.acknowledge(heartbeat, boot_ms())

    def takes_orders(self) -> bool:
        with self.lock:
            return not self.incarnations.lease.is_over(boot_ms())

    def take_orders(self, answer: Orders) -> None:
        with self.lock:
            write_on_full_disk(self.reserve.path, lambda: self.book.take(answer, boot_ms()))
            self.changed.notify_all()

    def batch(self) -> tuple[int, tuple[NodeReport, ...]]:
        """Return the number of the first report to send, and the reports."""
        with self.lock:
            first_n, reports = self.outbox.batch()
            lease = self.incarnations.lease
            if lease.is_over(boot_ms()) and not lease.joined:
                # A registration that comes after the deadline would begin what is over.
                return first_n, ()
            for report in reports:
                if isinstance(report, RegistrationReport):
                    self.incarnations.begin_lease(boot_ms(), report.terms_id)
            return first_n, reports

    def shrink_batch(self, incarnation: Incarnation, count: int) -> bool:
        """Make the next batch smaller than one of `count` reports; False where it cannot be."""
        with self.lock:
            return self.incarnations.incarnation != incarnation or self.outbox.shrink(count)

    def acknowledged(self, n: int) -> None:
        """Take the answer to reports."""
        with self.lock:
            self.outbox.acknowledge(n)
            self.book.start_alone(self.outbox.holds_ready, boot_ms())
            self.outbox.compact(self.incarnations.uuid)
            if self._leaving and self.outbox.is_empty:
                self.incarnations.end_lease()
                self.has_left = True
                log.info("the node has left")
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
            if self.incarnations.lease.over or not self.incarnations.lease.begun:
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
                grace_s = min(allocation.launch.grace_s, longest_s)
                self.workers.stop(allocation.allocation_id, grace_s, "stopped", boot_ms())

    def is_clear(self) -> bool:
        """Return whether no worker lives, but those that cannot be killed."""
        with self.lock:
            return self.workers.is_clear_of_others("")

    def tick(self) -> None:
        """Do what is due: watch the steps, report, lapse, register, leave."""
        with self.lock:
            self.reserve.refill()
            write_on_full_disk(self.reserve.path, self._do_due)

    def _do_due(self) -> None:
        now_ms, lease = boot_ms(), self.incarnations.lease
        kept = None if lease.is_over(now_ms) else self.incarnations.uuid
        workers, may_run = self.workers, lease.may_run(now_ms)
        kill_overdue(workers, now_ms, lease.deadline_ms if lease.begun else None)
        all_of(lambda: workers.fence(now_ms, kept), lambda: workers.scan(now_ms, may_run))
        self._make_reports()
        if kept is None:
            self._renew_incarnation(now_ms)
        elif lease.joined:
            self.book.start_alone(self.outbox.holds_ready, now_ms)
            self._report_terms(now_ms)
            self._leave()
        else:
            self._register(now_ms)
        self.changed.notify_all()

    def _act(self, welcome: Welcome, now_ms: int) -> SessionStep:
        """Go on, register or end the incarnation, as the ledger knows it."""
        lease = self.incarnations.lease
        if welcome.action == "continue" and lease.begun:
            self.incarnations.join()
            self.incarnations.use_terms(welcome.terms)
        elif welcome.action != "register" or lease.joined:
            # Fenced, or the ledger and this folder have different histories.
            self._fence(now_ms)
        elif not self.incarnations.may_register:
            self._begin_incarnation()
            return "again"
        else:
            if not lease.begun:
                self.incarnations.use_terms(welcome.terms)
            self._registrar.request()
            self._register(now_ms)
        return "serve"

    def _make_reports(self) -> None:
        """Put what is due into the outbox; a repetition after a crash is harmless."""
        for allocation, stage, report in self.workers.due_reports():
            if allocation.order.incarnation == self.incarnations.uuid:
                self._report(report)
                if isinstance(report, RefusedReport) and report.failure.reason == "prolog_failed":
                    self.drain(f"prolog_failed: {report.failure.detail}")
            allocation.note_reported(stage)

    def _report(self, report: NodeReport) -> None:
        self.outbox.add(report)
        self.changed.notify_all()

    def _fence(self, now_ms: int) -> None:
        """End the lease and every worker, whatever the deadline."""
        self.incarnations.end_lease()
        self.workers.fence(now_ms, None)

    def _renew_incarnation(self, now_ms: int) -> None:
        """Begin a new incarnation when nothing lives and the ends are reported."""
        if self.has_left or not self._in_session or not self.workers.clear_others(""):
            return
        self._last_reports.go_on(now_ms)
        is_reported = self.outbox.is_empty or not self.incarnations.lease.joined
        if is_reported or self._last_reports.is_over(now_ms):
            self._begin_incarnation()

    def _begin_incarnation(self) -> None:
        self.incarnations.begin_next()
        self.book.begin()
        self._last_reports = LastReportsTimer()
        self.workers.drop_others(self.incarnations.uuid)
        self.outbox.open(self.incarnations.uuid)
        self._registrar.begin()
        self.needs_hello = True

    def _register(self, now_ms: int) -> None:
        if registration := self._registrar.next_registration(self.incarnations.uuid, now_ms):
            self._report(registration)
        elif self._registrar.is_overdue(now_ms):
            self.needs_hello = True

    def _report_terms(self, now_ms: int) -> None:
        lease = self.incarnations.lease
        noted = self.workers.have_noted(lease.terms.terms_id)
        if terms_id := lease.take_terms_to_report(now_ms, noted):
            self._report(TermsAppliedReport(terms_id=terms_id, sent_boot_ms=now_ms))

    def _leave(self) -> None:
        """Leave once the last worker ended and its end is acknowledged."""
        may_leave = self.book.drain_reason and not self._leaving and self.outbox.is_empty
        if may_leave and self.workers.is_clear_of_others(""):
            self._leaving = True
            self._report(LeavingReport())
