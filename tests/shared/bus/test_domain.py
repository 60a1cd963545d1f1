"""What a domain does when the log is not what it was."""

from __future__ import annotations

import asyncio

import pytest

from shared.bus.domain import Domain, DomainSettings
from shared.bus.inbox import LIMIT_INPUTS
from shared.bus.memory import MemoryBroker
from shared.contracts.base import UnknownType
from shared.contracts.jobs import CancelJob
from shared.ledger.errors import Busy, LaneLost, TailLost, TooLarge
from shared.ledger.record import Record, decode, encode, pack
from shared.testing.ledger import ALARM, Seats, command
from tests.shared.bus.conftest import Bench

ANSWERS = 6


def memory(bench: Bench) -> MemoryBroker:
    assert bench.broker.memory is not None
    return bench.broker.memory


async def answered(bench: Bench, domain: Domain[Seats], count: int = ANSWERS) -> None:
    before = len(domain.state.answers)
    for n in range(before, before + count):
        await bench.send(command(f"c{n}"))
        await bench.deliver(domain)
        await bench.until(domain, n + 1)


async def test_a_lost_tail_stops_the_writer_at_its_next_append(twin: Bench) -> None:
    domain, _ = twin.domain()
    await domain.open()
    await twin.send(command("a"))
    await twin.deliver(domain)
    await domain.step()
    memory(twin).cut_tail(twin.ledger, 0)
    await twin.send(command("b"))
    await twin.deliver(domain)
    with pytest.raises(TailLost):
        await domain.step()


async def test_a_lost_tail_is_noticed_at_the_start_by_the_snapshot(twin: Bench) -> None:
    domain, _ = await twin.started(snapshots=True)
    await answered(twin, domain)
    await twin.stop(domain)
    memory(twin).cut_tail(twin.ledger, 2)
    again, _ = twin.domain(snapshots=True)
    with pytest.raises(TailLost, match="ends at 2"):
        await again.open()


async def test_a_lost_tail_is_noticed_at_the_start_by_a_mark_where_there_is_no_snapshot(
    twin: Bench,
) -> None:
    seldom = DomainSettings(window_ms=2, snapshot_every=1_000)
    domain, _ = twin.domain(settings=seldom, snapshots=True)
    await domain.open()
    await twin.send(command("a"))
    await twin.deliver(domain)
    await domain.step()
    memory(twin).cut_tail(twin.ledger, 0)
    again, _ = twin.domain(settings=seldom, snapshots=True)
    with pytest.raises(TailLost, match="ends at 0"):
        await again.open()


async def test_who_is_killed_before_its_first_snapshot_leaves_one_at_the_next_start(
    twin: Bench,
) -> None:
    rarely, soon = (DomainSettings(window_ms=2, snapshot_every=most) for most in (1_000, 2))
    killed, _ = twin.domain(settings=rarely, snapshots=True)
    await killed.open()
    for name in "abc":
        await twin.send(command(name))
        await twin.deliver(killed)
        await killed.step()
    assert not list(twin.folder.glob("*.snapshot"))
    killed_at_once, _ = twin.domain(settings=soon, snapshots=True)
    await killed_at_once.open()
    assert len(list(twin.folder.glob("*.snapshot"))) == 1
    again, _ = twin.domain(settings=rarely, snapshots=True)
    await again.open()
    assert again._since_snapshot == 0
    assert again.state == await twin.truth()


async def test_another_record_at_the_place_of_the_last_one_is_a_lost_tail(twin: Bench) -> None:
    domain, _ = await twin.started(snapshots=True)
    await answered(twin, domain)
    await twin.stop(domain)
    entries = memory(twin).entries(twin.ledger)
    record = decode(entries[-1].value)
    assert record is not None
    forged = Record("other", record.seq, record.prev, "w", record.at, record.inputs, record.ev)
    entries[-1] = entries[-1]._replace(value=encode(forged))
    again, _ = twin.domain(snapshots=True)
    with pytest.raises(TailLost, match="another record"):
        await again.open()


async def test_an_unknown_event_in_ones_own_ledger_stops_the_process(twin: Bench) -> None:
    twin_record = Record("a", 1, "", "w", 1, {}, pack([]))
    value = encode(twin_record).replace(
        b'"ev":[]', b'"ev":[{"type":"of.tomorrow.v9","subject":"s","data":{}}]'
    )
    await twin.send(value, twin.ledger)
    domain, _ = twin.domain()
    with pytest.raises(UnknownType):
        await domain.open()


async def test_a_state_of_another_schema_is_folded_from_0(
    twin: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain, _ = await twin.started(snapshots=True)
    await answered(twin, domain)
    await twin.stop(domain)
    monkeypatch.setattr(Seats, "SCHEMA", "seats2")
    again, _ = await twin.started(snapshots=True)
    assert again.state == await twin.truth()


async def test_behind_a_clock_that_was_ahead_time_neither_goes_back_nor_stands_still(
    twin: Bench,
) -> None:
    far = Record("a", 1, "", "w", 9_000_000_000_000, {}, pack([]))
    await twin.send(encode(far), twin.ledger)
    domain, _ = await twin.started()
    await twin.send(command("alarm", job_id=ALARM))
    await twin.deliver(domain)
    await twin.until(domain, 2)
    assert 9_000_000_000_000 < domain.cursor.at < 9_000_000_060_000


async def test_one_input_that_leads_to_too_much_stops_the_process(twin: Bench) -> None:
    domain, _ = twin.domain()
    await domain.open()
    await twin.send(command("b", reason="burst 4000"))
    await twin.deliver(domain)
    with pytest.raises(TooLarge):
        await domain.step()


async def test_old_and_missing_offsets_are_told_apart(twin: Bench) -> None:
    domain, _ = twin.domain()
    await domain.open()
    assert await domain.feed(twin.commands, 1, command("b")) == "gap"
    assert await domain.feed(twin.commands, 0, command("a")) == "ok"
    assert await domain.feed(twin.commands, 0, command("a")) == "old"
    assert await domain.feed(twin.commands, 1, command("b")) == "ok"
    assert domain.wants()[twin.commands] == 2


async def test_a_full_lane_pushes_back_and_goes_on_when_there_is_room(twin: Bench) -> None:
    domain, _ = twin.domain(settings=DomainSettings(window_ms=0))
    await domain.open()
    for n in range(LIMIT_INPUTS):
        await domain.feed(twin.commands, n, command(f"c{n}"))
    more = asyncio.ensure_future(domain.feed(twin.commands, LIMIT_INPUTS, command("more")))
    await asyncio.sleep(0.01)
    assert not more.done()
    await domain.step()
    assert await asyncio.wait_for(more, 30) == "ok"


async def test_a_lane_that_is_given_up_tells_who_waits_for_an_answer(twin: Bench) -> None:
    domain, flaky = await twin.started()

    async def never(_: object) -> None:
        await asyncio.sleep(60)

    flaky.before_append = never
    answer = domain.offer(CancelJob(job_id="l"))
    await asyncio.sleep(0.05)
    await domain.close()
    await domain.finish()
    with pytest.raises(LaneLost):
        await answer
    with pytest.raises(LaneLost):
        domain.offer(CancelJob(job_id="m"))
    flaky.before_append = None
    for running, task in twin._running:
        assert running is domain
        task.cancel()
    twin._running.clear()


async def test_too_many_local_inputs_are_refused_at_once(
    twin: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.bus.domain.MAX_LOCALS", 3)
    domain, _ = twin.domain()
    await domain.open()
    waiting = [domain.offer(CancelJob(job_id="l")) for _ in range(3)]
    with pytest.raises(Busy):
        domain.offer(CancelJob(job_id="l"))
    await domain.step()
    assert all(answer.done() for answer in waiting)


async def test_a_writer_that_keeps_losing_waits_before_the_next_try(
    twin: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.bus.domain.BACK_OFF_S", 0.0)
    domain, flaky = await twin.started()
    flaky.accidents.extend(["lost_request"] * 5)
    await answered(twin, domain, 1)
    assert domain.lost_appends == 5
    assert domain.losses == 0
