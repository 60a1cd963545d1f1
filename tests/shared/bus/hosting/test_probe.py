"""The figures of running lanes, on the in-memory broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from shared.bus.hosting.probe import LaneProbe, probe_lanes
from shared.contracts.base import Millis
from shared.ledger.partition import TP
from shared.telemetry.figures import Figure
from shared.telemetry.metrics import Metrics
from tests.harness.ledger import Seats, command
from tests.patience import PATIENCE_S
from tests.shared.bus.hosting.test_lanes import Shell

COMMANDS = TP("commands", 1)


def figures(state: Seats, now: Millis) -> Iterator[Figure]:
    yield Figure("berth_queue_gpus", len(state.answers), ("p",))


@pytest.fixture
async def shell() -> AsyncIterator[Shell]:
    made = Shell()
    await made.lanes.start()
    await made.lanes.assign({1})
    yield made
    await made.lanes.stop()


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


async def test_lag_counts_the_unread_records_of_a_topic(shell: Shell) -> None:
    metrics = Metrics("admission")
    for n in range(5):
        shell.broker.append(COMMANDS, command(f"c{n}"))
    await shell.lanes.deliver(COMMANDS, 0, command("c0"))
    async with asyncio.timeout(PATIENCE_S):
        while not shell.lanes.held[1].cursor.seq:  # it is in the ledger, and out of the inbox
            await asyncio.sleep(0.01)
    looks = asyncio.ensure_future(probe_lanes(shell.lanes, metrics, figures))
    async with asyncio.timeout(PATIENCE_S):
        while value(metrics, "berth_queue_gpus", pool="p") != 1:
            await asyncio.sleep(0.01)
    looks.cancel()
    assert value(metrics, "berth_consumer_lag_records", topic="commands", partition="1") == 4
    assert value(metrics, "berth_lanes_held") == 1
    assert value(metrics, "berth_inbox_inputs", partition="1") == 0


async def test_a_figure_that_fails_is_missing_and_nothing_else_is(
    shell: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(state: Seats, now: Millis) -> Iterator[Figure]:
        raise KeyError("tenant")

    metrics = Metrics("admission")
    LaneProbe(shell.lanes, metrics, broken).look()
    assert value(metrics, "berth_lanes_held") == 1
    assert "figures are missing" in caplog.text


async def test_ignored_records_and_lost_appends_are_counted_once(shell: Shell) -> None:
    metrics = Metrics("admission")
    looks = LaneProbe(shell.lanes, metrics, figures)
    lane = shell.lanes.held[1]
    lane._committer.lost_appends = 3
    shell.broker.append(TP("access", 0), b"no record at all")
    async with asyncio.timeout(PATIENCE_S):
        while not lane.inbox.ignored:
            await asyncio.sleep(0.01)
    for _ in range(3):
        looks.look()
    assert value(metrics, "berth_ignored_records_total", reason="reader_rule") == 1
    assert value(metrics, "berth_lost_appends_total") == 3


async def test_a_revoked_lane_has_no_figures(shell: Shell) -> None:
    metrics = Metrics("admission")
    looks = LaneProbe(shell.lanes, metrics, figures)
    looks.look()
    await shell.lanes.assign(set())
    looks.look()
    assert value(metrics, "berth_queue_gpus", pool="p") is None
    assert value(metrics, "berth_lanes_held") == 0
