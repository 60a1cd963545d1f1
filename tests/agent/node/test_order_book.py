"""Orders on disk: a crash anywhere repeats or completes what was begun, and never doubles it."""

from __future__ import annotations

import ast
import os
import re
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from berth_agent.core.incarnation import Machine
from berth_agent.linux import files, processes
from berth_agent.messages import NodeReport, Order, Orders, Position, StoppedReport, Terms
from berth_agent.messages import RefusedReport as Refused
from berth_agent.node.config import Config
from berth_agent.node.enforcement import kill_overdue
from berth_agent.node.files.allocation import SPARE_MS
from berth_agent.node.files.folders import Folders
from berth_agent.node.incarnation_store import IncarnationStore
from berth_agent.node.launch.spare_step import SpareStep
from berth_agent.node.order_book import OrderBook
from berth_agent.node.system.inventory import Inventory
from berth_agent.node.workers import Workers
from berth_agent.tokens import NodeTokens
from tests.agent.node_bench import a_deaf_process, launch
from tests.patience import PATIENCE_S

W = "0/5/0/0"
NOW_MS = 1_000
ROOT = Path(__file__).parents[3]


class Bench:
    """An order book over real folders; launches and reports are noted."""

    def __init__(self, folder: Path) -> None:
        config = Config(state=str(folder / "state"), run=str(folder / "run"), gpus=1)
        folders = Folders(config)
        self.launched: list[str] = []
        self.reports: list[NodeReport] = []
        machine = Machine("boot", "pid:[1]", "")
        self.incarnations = IncarnationStore(config, machine, lambda: "")
        tokens = partial(NodeTokens, "n1", "")
        self.workers = Workers(
            config,
            tokens,
            folders,
            lambda a: self.launched.append(a.allocation_id),
            SpareStep(config.state, tokens),
            Inventory(config),
        )
        path = f"{config.state}/applied"
        self.disk_problem = ""
        self.book = OrderBook(
            path,
            self.incarnations,
            self.workers,
            self.reports.append,
            self.fence,
            lambda: self.disk_problem,
        )
        self.fenced = 0
        terms = Terms(
            terms_id="t", stop_after_s=600, heartbeat_s=1, request_timeout_s=1, reconnect_s=1
        )
        if not self.incarnations.lease.begun:
            self.incarnations.use_terms(terms)
            self.incarnations.begin_lease(NOW_MS, terms.terms_id)
            self.incarnations.join()

    def fence(self, now_ms: int) -> None:
        self.fenced += 1

    def order(self, kind: str, seq: int, **fields: Any) -> Order:
        return Order.from_json(
            {
                "kind": kind,
                "position": {"seq": seq, "index": 0},
                "incarnation": self.incarnations.uuid,
                "allocation_id": W,
                **fields,
            }
        )

    def take(self, *orders: Order) -> None:
        through = Position(seq=max(o.position.seq for o in orders))
        self.book.take(Orders(orders=orders, through=through, writer="w1"), NOW_MS)

    def token(self) -> str:
        [allocation] = self.workers
        return allocation.token


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Refuses writes of the named files."""
    refused: list[str] = []
    write = files.write_atomic

    def refuse(path: str, content: bytes, mode: int = 0o600, *, sync: bool = False) -> None:
        if Path(path).name in refused:
            raise OSError(28, "No space left on device")
        write(path, content, mode, sync=sync)

    monkeypatch.setattr(files, "write_atomic", refuse)
    yield refused


def test_an_order_is_on_disk_with_its_position_before_it_has_an_effect(bench: Bench) -> None:
    bench.take(bench.order("prepare", 5, launch=launch("true")))
    assert bench.launched == [W]
    again = Bench(Path(bench.workers._config.state).parent)
    assert (again.book.applied, again.book.writer) == (Position(seq=5), "w1")
    assert again.token() == bench.token()
    again.take(again.order("prepare", 5, launch=launch("true")))
    assert again.launched == [] and again.reports == []


def test_a_worker_on_a_gpu_that_is_not_there_is_refused_and_the_node_drained(bench: Bench) -> None:
    lacking, present = launch("true", gpus=[1]), launch("true", gpus=[0])
    bench.take(bench.order("prepare", 5, launch=lacking), bench.order("prepare", 6, launch=present))
    reasons = [report.failure.reason for report in bench.reports if isinstance(report, Refused)]
    assert reasons == ["no_such_gpu", "node_draining"] and bench.launched == []
    assert bench.book.drain_reason == "no_such_gpu: GPUs [1]: not usable; the machine has 1"


def test_a_crash_before_the_position_is_noted_repeats_the_order(
    bench: Bench, full_disk: list[str]
) -> None:
    full_disk.append("applied")
    order = bench.order("prepare", 5, launch=launch("true"))
    with pytest.raises(OSError, match="No space"):
        bench.take(order)
    assert bench.launched == [] and bench.book.applied == Position()
    token = bench.token()
    full_disk.clear()
    bench.take(order)
    assert bench.launched == [W] and bench.token() == token


def test_a_new_incarnation_begins_at_the_start_of_the_ledger(bench: Bench, tmp_path: Path) -> None:
    bench.take(bench.order("prepare", 5, launch=launch("true")))
    bench.incarnations.begin_next()
    assert Bench(tmp_path).book.applied == Position(), "a crash before it is forgotten"
    bench.book.begin()
    assert bench.book.applied == Position()


def test_a_node_without_orders_notes_who_wrote_the_ledger(
    bench: Bench, tmp_path: Path, full_disk: list[str]
) -> None:
    """Executors know the latest writers alone."""

    def idle(seq: int, writer: str) -> tuple[Position, str]:
        bench.book.take(Orders(orders=(), through=Position(seq=seq), writer=writer), NOW_MS)
        book = Bench(tmp_path).book
        return book.applied, book.writer

    assert idle(7, "w1") == (Position(seq=7), "w1")
    assert idle(8, "w1") == (Position(seq=7), "w1"), "nothing is written at each poll"
    full_disk.append("applied")
    assert idle(9, "w2") == (Position(seq=7), "w1"), "a full disk is no reason to fail"


def test_the_position_that_an_older_version_noted_counts(bench: Bench, tmp_path: Path) -> None:
    files.write_json(f"{tmp_path}/state/applied", {"seq": 7, "index": 1})
    assert Bench(tmp_path).book.applied == Position(seq=7, index=1)


def test_a_full_disk_refuses_new_work_and_begins_what_was_noted(
    bench: Bench, full_disk: list[str]
) -> None:
    full_disk.append("applied")
    noted = bench.order("prepare", 5, launch=launch("true"))
    with pytest.raises(OSError, match="No space"):
        bench.take(noted)
    full_disk.clear()
    bench.disk_problem = "no space"
    bench.take(noted)
    assert bench.launched == [W] and bench.reports == []
    bench.take(bench.order("prepare", 6, allocation_id="0/6/0/0", launch=launch("true")))
    [report] = bench.reports
    assert report.failure.reason == "disk_full"  # type: ignore[union-attr]
    assert bench.launched == [W]


def test_a_stop_that_a_full_disk_does_not_take_is_taken_when_it_is_repeated(
    bench: Bench, full_disk: list[str]
) -> None:
    bench.take(bench.order("prepare", 5, launch=launch("true")))
    [allocation] = bench.workers
    stop = bench.order("stop", 6)
    full_disk.append("tombstone")
    with pytest.raises(OSError, match="No space"):
        bench.take(stop)
    assert bench.book.applied == Position(seq=5), "the executor sends it again"
    full_disk.clear()
    bench.take(stop)
    assert allocation.tombstone() is not None and bench.book.applied == Position(seq=6)


def test_an_order_that_cannot_be_noted_has_no_effect(bench: Bench, full_disk: list[str]) -> None:
    full_disk.append("order.json")
    with pytest.raises(OSError, match="No space"):
        bench.take(bench.order("prepare", 5, launch=launch("true")))
    assert bench.launched == [] and not bench.workers.holds(W)
    assert bench.book.applied == Position()


def test_a_stop_before_the_worker_was_noted_means_it_never_starts(bench: Bench) -> None:
    stop = bench.order("stop", 6)
    prepare = bench.order("prepare", 5, launch=launch("true"))
    bench.take(stop)
    bench.take(prepare)
    assert bench.reports == [StoppedReport(allocation_id=W)] * 2
    assert bench.launched == []


def test_a_stop_leaves_its_tombstone_although_the_lock_is_held(bench: Bench) -> None:
    """The step that holds the lock is starting its worker: the next tick leaves it."""
    bench.take(bench.order("prepare", 5, launch=launch("true")))
    [allocation] = bench.workers
    lock = files.lock(allocation.path("lock"), wait=True)
    assert lock is not None
    bench.take(bench.order("stop", 6, grace_s=3.0))
    assert allocation.tombstone() is None and allocation.noted_stop() is not None
    os.close(lock)
    allocation.launching = False
    bench.workers.scan(NOW_MS, True)
    assert (allocation.tombstone() or {})["reason"] == "stopped"
    assert allocation.is_dead and allocation.state["stopped"] is True


def test_a_step_that_may_have_been_forked_is_lost_only_behind_a_tombstone(bench: Bench) -> None:
    """[R7] The step takes the lock before it starts its worker, and finds the tombstone."""
    bench.take(bench.order("prepare", 5, launch=launch("true")))
    [allocation] = bench.workers
    allocation.launching = False
    lock = files.lock(allocation.path("lock"), wait=True)
    assert lock is not None
    bench.workers.scan(NOW_MS, may_run=False)
    assert not allocation.is_dead and list(bench.workers.due_reports()) == []
    os.close(lock)
    bench.workers.scan(NOW_MS, may_run=False)
    assert allocation.is_dead and (allocation.tombstone() or {})["reason"] == "lost"


@pytest.mark.process
@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_step_that_outlives_its_time_is_killed(bench: Bench, is_stopped: bool) -> None:
    """[R18] The agent kills it some seconds after the deadline, or after the grace of a stop."""
    bench.take(bench.order("prepare", 5, launch=launch("true")))
    [allocation] = bench.workers
    allocation.launching = False
    with a_deaf_process() as step:
        ticks = processes.started_ticks(step.pid)
        files.write_json(
            allocation.path("state.json"), {"phase": "running", "pid": step.pid, "ticks": ticks}
        )
        deadline_ms = None if is_stopped else NOW_MS + 3_000
        if is_stopped:
            bench.take(bench.order("stop", 6, grace_s=3.0))
        bench.workers.scan(NOW_MS, may_run=True)
        kill_overdue(bench.workers, NOW_MS + 3_000 + SPARE_MS, deadline_ms)
        assert step.poll() is None
        kill_overdue(bench.workers, NOW_MS + 3_001 + SPARE_MS, deadline_ms)
        assert step.wait(PATIENCE_S) == -signal.SIGKILL


def test_nothing_is_prepared_without_a_lease(bench: Bench) -> None:
    bench.incarnations.end_lease()
    bench.take(bench.order("prepare", 5, launch=launch("true")))
    assert bench.launched == [] and not bench.workers.holds(W)


def test_a_draining_node_refuses(bench: Bench) -> None:
    bench.book.drain_reason = "maintenance"
    bench.take(bench.order("prepare", 5, launch=launch("true")))
    [report] = bench.reports
    assert report.failure.reason == "node_draining"  # type: ignore[union-attr]


def test_orders_to_the_node(bench: Bench) -> None:
    terms = {**bench.incarnations.terms.to_json(), "terms_id": "t2"}
    bench.take(bench.order("terms", 7, allocation_id="", terms=terms))
    assert bench.incarnations.lease.terms.terms_id == "t2"
    bench.take(bench.order("fence", 8, allocation_id=""))
    assert bench.fenced == 1
    bench.take(bench.order("fence", 8, allocation_id=""))
    assert bench.fenced == 1, "an old fence has no effect"


def test_the_page_of_nodes_names_every_reason() -> None:
    page = (ROOT / "docs" / "operations" / "nodes.md").read_text()
    table = page.partition("## Ends, and what they are called")[2].partition("Output is kept")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    paths = (ROOT / "agent" / "berth_agent").rglob("*.py")
    used = {reason for path in paths for reason in _reasons(ast.parse(path.read_text()))}
    assert used - {"stopped", "lost"} <= named


def _reasons(tree: ast.Module) -> Iterator[str]:
    """Yield the reasons of refusals and failures in a module."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        named = [k.value for k in node.keywords if k.arg == "reason"]
        first = node.args[:1] if node.func.id in ("StartRefused", "_failure") else []
        for value in (*named, *first):
            if isinstance(value, ast.Constant):
                yield str(value.value)
