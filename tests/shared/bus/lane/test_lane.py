"""A lane with a damaged log, a wrong clock, or too many inputs."""

from __future__ import annotations

import asyncio

import pytest

from shared.bus.clock import LedgerClock, Reading, WallClock
from shared.bus.folds.snapshots import Snapshots
from shared.bus.inputs.inbox import LIMIT_INPUTS
from shared.bus.lane.lane import Lane, LaneSettings
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.job_commands import CancelJob
from shared.ledger.errors import Busy, LaneHalted, LaneRevoked, TailLost
from shared.ledger.record import Record, decode, encode, pack
from tests.harness.ledger import ALARM, SeatDecider, Seats, command
from tests.lost_tail import cut_tail
from tests.patience import PATIENCE_S
from tests.shared.bus.conftest import Bench

ANSWERS = 6


def memory(bench: Bench) -> MemoryBroker:
    assert bench.broker.memory is not None
    return bench.broker.memory


async def answered(bench: Bench, lane: Lane[Seats], count: int = ANSWERS) -> None:
    before = len(lane.state.answers)
    for n in range(before, before + count):
        await bench.send(command(f"c{n}"))
        await bench.deliver(lane)
        await bench.until(lane, n + 1)


def marks_of(bench: Bench) -> Snapshots[Seats]:
    return Snapshots(bench.folder, "admission", bench.partition, Seats.SCHEMA)


async def test_a_lost_tail_stops_the_writer_at_its_next_append(twin: Bench) -> None:
    lane, _ = twin.make_lane()
    await lane.start()
    await twin.send(command("a"))
    await twin.deliver(lane)
    await lane.poll()
    cut_tail(memory(twin), twin.ledger, 0)
    await twin.send(command("b"))
    await twin.deliver(lane)
    with pytest.raises(TailLost):
        await lane.poll()


async def test_a_lost_tail_is_noticed_at_the_start_by_the_snapshot(twin: Bench) -> None:
    lane, _ = await twin.started(snapshots=True)
    await answered(twin, lane)
    await twin.stop(lane)
    cut_tail(memory(twin), twin.ledger, 2)
    again, _ = twin.make_lane(snapshots=True)
    with pytest.raises(TailLost, match="ends at 2"):
        await again.start()


async def test_a_lost_tail_is_noticed_at_the_start_by_a_mark_where_there_is_no_snapshot(
    twin: Bench,
) -> None:
    seldom = LaneSettings(window_ms=2, snapshot_every=1_000)
    lane, _ = twin.make_lane(settings=seldom, snapshots=True)
    await lane.start()
    await twin.send(command("a"))
    await twin.deliver(lane)
    await lane.poll()
    cut_tail(memory(twin), twin.ledger, 0)
    again, _ = twin.make_lane(settings=seldom, snapshots=True)
    with pytest.raises(TailLost, match="ends at 0"):
        await again.start()


async def test_what_another_process_appended_is_marked_by_the_fold_of_a_start(twin: Bench) -> None:
    rival, _ = await twin.started()
    await answered(twin, rival)
    lane, _ = twin.make_lane(snapshots=True)
    await lane.start()
    assert marks_of(twin).marked() == lane.cursor == rival.cursor


async def test_the_fact_of_a_rival_that_won_an_append_is_marked(
    twin: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.bus.folds.snapshot_policy.MARK_EVERY_S", 0.0)
    lane, _ = twin.make_lane(snapshots=True)
    rival, _ = twin.make_lane()
    for one in (rival, lane):
        await one.start()
    await twin.send(command("a"))
    for one in (rival, lane):
        await twin.deliver(one)
        await one.poll()
    assert lane.lost_appends == 1
    assert marks_of(twin).marked() == lane.cursor and lane.cursor.id == rival.cursor.id


async def test_a_lane_killed_before_its_first_snapshot_stores_one_at_the_next_start(
    twin: Bench,
) -> None:
    rarely, soon = (LaneSettings(window_ms=2, snapshot_every=most) for most in (1_000, 2))
    killed, _ = twin.make_lane(settings=rarely, snapshots=True)
    await killed.start()
    for name in "abc":
        await twin.send(command(name))
        await twin.deliver(killed)
        await killed.poll()
    assert not list(twin.folder.glob("*.snapshot"))
    killed_at_once, _ = twin.make_lane(settings=soon, snapshots=True)
    await killed_at_once.start()
    (stored,) = twin.folder.glob("*.snapshot")
    file_number = stored.stat().st_ino
    each = LaneSettings(window_ms=2, snapshot_every=1)
    again, _ = twin.make_lane(settings=each, snapshots=True)
    await again.start()
    assert stored.stat().st_ino == file_number, "it folds no record behind the snapshot"
    assert again.state == await twin.truth()


async def test_another_record_at_the_place_of_the_last_one_is_a_lost_tail(twin: Bench) -> None:
    lane, _ = await twin.started(snapshots=True)
    await answered(twin, lane)
    await twin.stop(lane)
    entries = memory(twin).entries(twin.ledger)
    record = decode(entries[-1].value)
    assert record is not None
    forged = Record("other", record.seq, record.prev, "w", record.at, record.inputs, record.ev)
    entries[-1] = entries[-1]._replace(value=encode(forged))
    again, _ = twin.make_lane(snapshots=True)
    with pytest.raises(TailLost, match="another record"):
        await again.start()


async def test_an_unknown_event_in_ones_own_ledger_halts_the_lane(twin: Bench) -> None:
    twin_record = Record("a", 1, "", "w", 1, {}, pack([]))
    value = encode(twin_record).replace(
        b'"ev":[]', b'"ev":[{"type":"of.tomorrow.v9","subject":"s","data":{}}]'
    )
    await twin.send(value, twin.ledger)
    lane, _ = twin.make_lane()
    with pytest.raises(LaneHalted, match="record 1 cannot be folded: UnknownType"):
        await lane.start()


async def test_a_state_of_another_schema_is_folded_from_0(
    twin: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane, _ = await twin.started(snapshots=True)
    await answered(twin, lane)
    await twin.stop(lane)
    monkeypatch.setattr(Seats, "SCHEMA", "seats2")
    again, _ = await twin.started(snapshots=True)
    assert again.state == await twin.truth()


async def test_behind_a_clock_that_was_ahead_time_neither_goes_back_nor_stands_still(
    twin: Bench,
) -> None:
    far = Record("a", 1, "", "w", 9_000_000_000_000, {}, pack([]))
    await twin.send(encode(far), twin.ledger)
    lane, _ = await twin.started()
    await twin.send(command("alarm", job_id=ALARM))
    await twin.deliver(lane)
    await twin.until(lane, 2)
    assert 9_000_000_000_000 < lane.cursor.at < 9_000_000_060_000


async def test_old_and_missing_offsets_are_distinguished(twin: Bench) -> None:
    lane, _ = twin.make_lane()
    await lane.start()
    assert await lane.deliver(twin.commands, 1, command("b")) == "gap"
    assert await lane.deliver(twin.commands, 0, command("a")) == "ok"
    assert await lane.deliver(twin.commands, 0, command("a")) == "old"
    assert await lane.deliver(twin.commands, 1, command("b")) == "ok"
    assert lane.next_offsets()[twin.commands] == 2


async def test_a_full_lane_pushes_back_and_goes_on_when_there_is_room(twin: Bench) -> None:
    lane, _ = twin.make_lane(settings=LaneSettings(window_ms=0))
    await lane.start()
    for n in range(LIMIT_INPUTS):
        await lane.deliver(twin.commands, n, command(f"c{n}"))
    more = asyncio.ensure_future(lane.deliver(twin.commands, LIMIT_INPUTS, command("more")))
    await asyncio.sleep(0.01)
    assert not more.done()
    await lane.poll()
    assert await asyncio.wait_for(more, PATIENCE_S) == "ok"


async def test_a_revoked_lane_fails_its_undecided_local_inputs(twin: Bench) -> None:
    lane, flaky = await twin.started()

    async def never(_: object) -> None:
        await asyncio.sleep(60)

    flaky.before_append = never
    answer = lane.offer(CancelJob(job_id="l"))
    await asyncio.sleep(0.05)
    await lane.revoke()
    await lane.stop()
    with pytest.raises(LaneRevoked):
        await answer
    with pytest.raises(LaneRevoked):
        lane.offer(CancelJob(job_id="m"))
    flaky.before_append = None
    for running, task in twin._running:
        assert running is lane
        task.cancel()
    twin._running.clear()


async def test_too_many_local_inputs_are_refused_at_once(
    twin: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.bus.inputs.local_inputs.MAX_LOCALS", 3)
    lane, _ = twin.make_lane()
    await lane.start()
    waiting = [lane.offer(CancelJob(job_id="l")) for _ in range(3)]
    with pytest.raises(Busy):
        lane.offer(CancelJob(job_id="l"))
    await lane.poll()
    assert all(answer.done() for answer in waiting)


async def test_a_writer_that_keeps_losing_waits_before_the_next_try(
    twin: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.bus.lane.commit.BACK_OFF_S", 0.0)
    lane, flaky = await twin.started()
    flaky.accidents.extend(["lost_request"] * 5)
    await answered(twin, lane, 1)
    assert lane.lost_appends == 5
    assert lane.losses == 0


async def test_a_lane_decides_at_the_time_of_the_clock_that_it_is_given(twin: Bench) -> None:
    class SetClock(WallClock):
        def read(self) -> Reading:
            return Reading(12_345, 0.0, 0, 0)

    lane = Lane(SeatDecider(), twin.partition, twin.raw, clock=LedgerClock(SetClock()))
    await lane.start()
    decided = lane.offer(CancelJob(job_id="job"))
    await lane.poll()
    assert [fact.at for fact in await decided] == [12_345]
    assert lane.cursor.at == 12_345
