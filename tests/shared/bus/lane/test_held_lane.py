from __future__ import annotations

import asyncio

import pytest

from shared.bus.lane.held_lane import HeldLane
from shared.contracts.job_commands import CancelJob
from shared.ledger.errors import LaneRevoked
from tests.harness.ledger import Seats
from tests.patience import PATIENCE_S
from tests.shared.bus.conftest import Bench


@pytest.fixture
async def shell() -> asyncio.Task[None]:
    """Work of a shell that never ends by itself."""

    async def work() -> None:
        await asyncio.Event().wait()

    return asyncio.create_task(work())


async def test_stopping_ends_the_lane_and_the_work_of_its_shell(
    twin: Bench, shell: asyncio.Task[None]
) -> None:
    lane, _ = twin.make_lane()
    await lane.start()
    run = asyncio.create_task(lane.run())
    held: HeldLane[Seats] = HeldLane(lane, [run, shell])
    await held.stop()
    assert shell.cancelled()
    assert run.done() and not run.cancelled() and run.exception() is None
    with pytest.raises(LaneRevoked):
        lane.offer(CancelJob(job_id="job"))


async def test_an_append_in_flight_delays_the_stop_for_a_limited_time(
    twin: Bench, shell: asyncio.Task[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.bus.lane.held_lane.STOP_S", 0.01)
    lane, flaky = twin.make_lane()
    appending = asyncio.Event()

    async def hang(_: object) -> None:
        appending.set()
        await asyncio.Event().wait()

    flaky.before_append = hang
    await lane.start()
    run = asyncio.create_task(lane.run())
    undecided = lane.offer(CancelJob(job_id="job"))
    await asyncio.wait_for(appending.wait(), PATIENCE_S)
    await asyncio.wait_for(HeldLane(lane, [run, shell]).stop(), PATIENCE_S)
    assert run.cancelled()
    with pytest.raises(LaneRevoked):
        await undecided
