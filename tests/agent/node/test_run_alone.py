"""A worker that waits for no others starts by the acknowledgement of its readiness, without go."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.agent.executor_double import ExecutorDouble, Refuse
from tests.agent.node_bench import NodeBench, W, a_node, launch, line
from tests.agent.step_bench import until
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.process


class Unanswered:
    """The broker takes no readiness until `end`: requests with one wait, and are refused then."""

    def __init__(self, double: ExecutorDouble) -> None:
        self.count = 0
        self._over = threading.Event()
        double.before = self._hold

    def _hold(self, endpoint: str, message: Any) -> None:
        reports = message.reports if endpoint == "reports" else ()
        if any(report.kind == "ready" for report in reports) and not self._over.is_set():
            self.count += 1
            self._over.wait(PATIENCE_S)
            raise Refuse(503)

    def wait(self) -> None:
        """Return once readiness was sent after this call."""
        before = self.count
        until(lambda: self.count > before)

    def end(self) -> None:
        self._over.set()


def prepared(double: ExecutorDouble, node: NodeBench, command: str) -> Unanswered:
    """Return what a prepared worker waits for the end of."""
    unanswered = Unanswered(double)
    double.order("prepare", W, launch=launch(command, starts_alone=True))
    unanswered.wait()
    assert node.step(W)["phase"] == "prepared"
    return unanswered


def test_it_starts_once_its_readiness_is_durable(double: ExecutorDouble, node: NodeBench) -> None:
    unanswered = prepared(double, node, 'echo "port $MASTER_PORT"; mkfifo fifo; read line < fifo')
    assert node.output(W) == ""
    unanswered.end()
    line(node, "port")
    ready = double.wait_for("ready", W)
    assert node.output(W) == f"port {ready.master_port}\n"
    # What placement orders then, and what an older one would have ordered, starts nothing again.
    double.order("go", W, master_port=ready.master_port)
    double.order("terms", terms={**double.terms, "terms_id": "t2"})
    double.wait_for("terms_applied")
    (node.state / "work" / "j1.1.0" / "fifo").write_text("end\n")
    assert double.wait_for("exited", W).exit_code == 0
    assert node.output(W) == f"port {ready.master_port}\n"
    kinds = [report.kind for report in double.reports if getattr(report, "allocation_id", "") == W]
    assert kinds == ["ready", "exited"]


def test_an_agent_that_was_killed_before_that_starts_it_after_a_restart(
    double: ExecutorDouble, node: NodeBench
) -> None:
    unanswered = prepared(double, node, "exit 4")
    node.kill()
    node.start()
    unanswered.wait()
    assert node.step(W)["phase"] == "prepared"
    unanswered.end()
    assert double.wait_for("exited", W).exit_code == 4


def test_an_agent_that_was_killed_right_after_that_starts_it_too(
    double: ExecutorDouble, node: NodeBench
) -> None:
    """The note of the start was lost with the agent: the acknowledgement was noted before."""
    unanswered = prepared(double, node, "exit 4")
    node.kill()
    unanswered.end()
    outbox = node.state / "outbox"
    count = sum(b'"report"' in one for one in outbox.read_bytes().splitlines())
    with outbox.open("ab") as lines:
        lines.write(b'{"acknowledged": %d}\n' % count)
    node.start()
    assert double.wait_for("exited", W).exit_code == 4
    assert not double.of_kind("ready", W)


def test_a_stop_before_that_is_final(double: ExecutorDouble, node: NodeBench) -> None:
    unanswered = prepared(double, node, "touch ran")
    double.order("stop", W)
    until(lambda: node.step(W)["phase"] == "dead")
    unanswered.end()
    double.wait_for("stopped", W)
    assert not (node.state / "work" / "j1.1.0" / "ran").exists()


def test_it_does_not_start_where_the_lease_is_over(double: ExecutorDouble) -> None:
    double.terms["stop_after_s"] = 2.0
    with a_node(double) as node:
        unanswered = prepared(double, node, "touch ran")
        double.before = _refuse
        until(lambda: node.step(W).get("phase") in (None, "dead"))
        unanswered.end()
        double.before = lambda endpoint, message: None
        double.wait(lambda: len(double.of_kind("registration")) == 2)
        assert not (node.state / "work" / "j1.1.0" / "ran").exists()


def _refuse(endpoint: str, message: Any) -> None:
    if endpoint in ("heartbeat", "reports"):
        raise Refuse(503)
