"""Orders on disk: a crash anywhere repeats or completes what was begun, and never doubles it."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from berth_agent.core.incarnation import Machine
from berth_agent.linux import files
from berth_agent.messages import NodeReport, Order, Position, StoppedReport, Terms
from berth_agent.node.config import Config
from berth_agent.node.folders import Folders
from berth_agent.node.life import NodeLife
from berth_agent.node.order_book import OrderBook
from berth_agent.node.workers import Workers
from tests.agent.node_bench import launch

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
        self.life = NodeLife(config, Machine("boot", "pid:[1]", ""))
        self.workers = Workers(
            config, "n1", folders, lambda a: self.launched.append(a.allocation_id)
        )
        path = f"{config.state}/applied"
        self.book = OrderBook(path, self.life, self.workers, self.reports.append, self.fence)
        self.fenced = 0
        terms = Terms(
            terms_id="t", stop_after_s=600, heartbeat_s=1, request_timeout_s=1, reconnect_s=1
        )
        if not self.life.lease.begun:
            self.life.use_terms(terms)
            self.life.begin_lease(NOW_MS)
            self.life.join()

    def fence(self, now_ms: int) -> None:
        self.fenced += 1

    def order(self, kind: str, seq: int, **fields: Any) -> Order:
        return Order.from_json(
            {
                "kind": kind,
                "position": {"seq": seq, "index": 0},
                "incarnation": self.life.uuid,
                "allocation_id": W,
                **fields,
            }
        )

    def take(self, *orders: Order) -> None:
        self.book.take(orders, Position(seq=max(o.position.seq for o in orders)), NOW_MS)

    def token(self) -> str:
        [allocation] = self.workers
        return allocation.token


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Refuses durable writes of the named files."""
    refused: list[str] = []
    write = files.write_durable

    def refuse(path: str, content: bytes, mode: int = 0o600) -> None:
        if Path(path).name in refused:
            raise OSError(28, "No space left on device")
        write(path, content, mode)

    monkeypatch.setattr(files, "write_durable", refuse)
    yield refused


def test_an_order_is_on_disk_with_its_position_before_it_has_an_effect(bench: Bench) -> None:
    bench.take(bench.order("prepare", 5, launch=launch("true")))
    assert bench.launched == [W]
    again = Bench(Path(bench.workers._config.state).parent)
    assert again.book.applied == Position(seq=5) and again.token() == bench.token()
    again.take(again.order("prepare", 5, launch=launch("true")))
    assert again.launched == [] and again.reports == []


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
    bench.workers.scan(NOW_MS, None, True)
    assert (allocation.tombstone() or {})["reason"] == "stopped"
    assert allocation.is_dead and allocation.state["stopped"] is True


def test_nothing_is_prepared_without_a_lease(bench: Bench) -> None:
    bench.life.end_lease()
    bench.take(bench.order("prepare", 5, launch=launch("true")))
    assert bench.launched == [] and not bench.workers.holds(W)


def test_a_draining_node_refuses(bench: Bench) -> None:
    bench.book.drain_reason = "maintenance"
    bench.take(bench.order("prepare", 5, launch=launch("true")))
    [report] = bench.reports
    assert report.failure.reason == "node_draining"  # type: ignore[union-attr]


def test_orders_to_the_node(bench: Bench) -> None:
    terms = {**bench.life.terms.to_json(), "terms_id": "t2"}
    bench.take(bench.order("terms", 7, allocation_id="", terms=terms))
    assert bench.life.lease.terms.terms_id == "t2"
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
