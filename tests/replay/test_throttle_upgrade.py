"""A lane that an earlier release wrote goes on in this one: its ledger and snapshot are real ones.

`throttle_3/` is of the last release with that schema: twelve requests of two tenants in three
interactions that its clients named, budgets by user and tenant, two requests that run and two that
wait.
"""

from __future__ import annotations

import asyncio
import lzma
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.throttle.core.decide import Throttle
from services.throttle.core.disciplines.budgets import Budget
from services.throttle.core.state import EndpointState
from shared.bus.clock import LedgerClock, Reading, WallClock
from shared.bus.folds.fold_key import key_of_state
from shared.bus.folds.snapshots import Snapshots
from shared.bus.lane.lane import Lane, LaneSettings
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.base import Event
from shared.contracts.llm import LlmRequestFinished, LlmRequestQueued, LlmRequestStarted
from shared.ledger.partition import TP
from shared.projections.ledger_events import LedgerEvent, decode_events
from shared.verify.llm_lifecycle import LlmLifecycleRule
from shared.verify.llm_limits import BudgetRule
from tests.harness.ledger import accepted
from tests.services.throttle.llm import ended, local_request

FORMER = Path(__file__).parent / "throttle_3"
LEDGER = TP("throttle", 0)
LAST_AT = 1795528621511


class UpgradeClock(WallClock):
    """A second after the last record: the requests that wait have not timed out."""

    def read(self) -> Reading:
        return Reading(LAST_AT + 1_000, time.monotonic(), 0, 0)


def former_ledger() -> MemoryBroker:
    broker = MemoryBroker()
    for line in lzma.decompress((FORMER / "ledger.jsonl.xz").read_bytes()).splitlines():
        broker.append(LEDGER, line)
    return broker


@asynccontextmanager
async def upgraded(broker: MemoryBroker, data: Path) -> AsyncIterator[Lane[EndpointState]]:
    """Start the lane on what the earlier release left in its folder."""
    key = key_of_state(EndpointState)
    snapshots: Snapshots[EndpointState] = Snapshots(data, "throttle", 0, key)
    settings = LaneSettings(window_ms=1)
    client, clock = MemoryLog(broker), LedgerClock(UpgradeClock())
    lane = Lane(Throttle(), 0, client, snapshots=snapshots, settings=settings, clock=clock)
    await lane.start()
    task = asyncio.create_task(lane.run())
    yield lane
    await lane.revoke()
    await task
    await lane.stop()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FORMER, tmp_path / "snapshots"))


def events(broker: MemoryBroker) -> list[LedgerEvent]:
    return decode_events(accepted(LEDGER, broker.entries(LEDGER)))


def used(state: EndpointState, owner: str, holder: str) -> tuple[float, float]:
    """Return what a holder used of the first budget with it, and what its requests hold."""
    budgets = [guard for guard in state.discipline.guards if isinstance(guard, Budget)]
    known = (budget.usages.get(owner) for budget in budgets)
    own = next(table for table in known if table is not None and table.get(holder) is not None)
    usage = own.values[holder]
    return usage.meter.total(LAST_AT), usage.held


async def test_the_ledger_is_folded_anew_and_the_old_snapshot_is_left_alone(data: Path) -> None:
    async with upgraded(former_ledger(), data) as lane:
        state = lane.state
        assert [*state.running] == ["r13", "r14"]
        assert [*state.waiting] == ["r15", "r16"]
        assert state.capacity == 2
        assert state.discipline.level > 0
        assert used(state, "acme", "u1") == (6 * (30 + 40), 150)
        assert used(state, "acme", "u2") == (50 + 7, 93)
        assert used(state, "", "acme")[0] == pytest.approx((6 * 40 + 7) * 8e-6)
        assert not any(request.served.is_issued for request in state.open_requests())
    names = sorted(path.name for path in data.iterdir())
    assert any(name.startswith("throttle-0-throttle-3-") for name in names)
    assert any(name.startswith(f"throttle-0-{key_of_state(EndpointState)}-") for name in names)


async def test_open_requests_go_on_and_new_ones_are_served(data: Path) -> None:
    broker = former_ledger()

    async def offer(lane: Lane[EndpointState], *inputs: object) -> list[Event]:
        facts = [fact for item in inputs for fact in await lane.offer(item)]  # type: ignore[arg-type]
        return [fact.event for fact in facts]

    async with upgraded(broker, data) as lane:
        ended_now = await offer(
            lane, ended("r13", output=30), ended("r14", output=9, outcome="lost")
        )
        assert [type(event) for event in ended_now].count(LlmRequestFinished) == 2
        assert {*lane.state.running} == {"r15", "r16"}
        again = await offer(lane, local_request("r1", "acme"))
        assert again == [], "its id was served before the upgrade"
        new = await offer(lane, local_request("r17", "acme", user="u1"))
        assert [type(event) for event in new] == [LlmRequestQueued]
        started = await offer(lane, ended("r15", "r16", output=5))
        assert [type(event) for event in started].count(LlmRequestStarted) == 1
    for rule in (LlmLifecycleRule(), BudgetRule()):
        for event in events(broker):
            rule.observe(event)
        assert list(rule.finish()) == []
