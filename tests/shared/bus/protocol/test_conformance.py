"""The rules that every broker, and every lane on it, must keep."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from shared.bus.ids import new_id
from shared.bus.lane.lane import LaneSettings
from shared.bus.lane.rounds import MAX_SILENT
from shared.bus.logs.log import Entry, fetch
from shared.bus.logs.tail import LedgerTail, TopicTail
from shared.contracts.codec import encode_event
from shared.contracts.job_commands import CancelJob
from shared.contracts.nodes import NodeUncordoned
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor
from shared.ledger.record import LIMIT_BYTES, Record, StoredEvent, encode, next_of, pack
from tests.harness.flaky_log import Accident
from tests.harness.ledger import accepted, command
from tests.patience import PATIENCE_S
from tests.shared.bus.conftest import Bench

NUMBER = 20


async def test_offsets_are_dense_and_what_is_written_comes_back(bench: Bench) -> None:
    for n in range(5):
        offset = await bench.raw.append(
            bench.commands, b"v%d" % n, key=b"k", headers=[("traceparent", b"t")]
        )
        assert offset == n
    entries = await fetch(bench.raw, bench.commands, 2, 10, 2.0)
    assert [(e.offset, e.key, e.value) for e in entries] == [
        (n, b"k", b"v%d" % n) for n in range(2, 5)
    ]
    assert entries[0].headers == (("traceparent", b"t"),)
    assert await bench.raw.begin(bench.commands) == 0


async def test_two_racing_writers_get_different_places(bench: Bench) -> None:
    other = bench.broker.log()
    await other.start()

    async def write(log: object, name: str) -> list[int]:
        return [await log.append(bench.commands, name.encode()) for _ in range(NUMBER)]  # type: ignore[attr-defined]

    mine, theirs = await asyncio.gather(write(bench.raw, "a"), write(other, "b"))
    await other.stop()
    assert sorted(mine + theirs) == list(range(2 * NUMBER))
    values = {e.offset: e.value for e in await bench.read(bench.commands)}
    assert all(values[offset] == b"a" for offset in mine)


async def test_every_command_is_answered_once(bench: Bench) -> None:
    lane, _ = await bench.started()
    for n in range(NUMBER):
        await bench.send(command(f"c{n}"))
    await bench.deliver(lane)
    await bench.until(lane, NUMBER)
    truth = await bench.truth()
    assert set(truth.answers) == {f"c{n}" for n in range(NUMBER)}
    assert truth.problems() == []
    assert truth == lane.state
    assert lane.cursor.inputs[bench.commands.key] == NUMBER


async def test_two_rivals_on_one_lane_never_disagree(bench: Bench) -> None:
    one, _ = await bench.started()
    two, _ = await bench.started()
    for n in range(NUMBER):
        await bench.send(command(f"c{n}"))
        await asyncio.gather(bench.deliver(one), bench.deliver(two))
    await asyncio.gather(bench.until(one, 1), bench.until(two, 1))
    await bench.stop(one)
    await bench.stop(two)
    await one.start()
    truth = await bench.truth()
    await one.stop()
    assert truth.problems() == []
    assert len(truth.answers) == NUMBER
    assert truth == one.state
    assert one.lost_appends + two.lost_appends > 0


@pytest.mark.parametrize(
    "accident", ["lost_request", "lost_ack", "late", "duplicate", "wrong_offset"]
)
async def test_no_accident_of_an_append_loses_or_repeats_an_input(
    bench: Bench, accident: Accident
) -> None:
    lane, flaky = await bench.started()
    flaky.accidents.extend(["none", accident, "none", accident])
    for n in range(6):
        await bench.send(command(f"c{n}"))
        await bench.deliver(lane)
        await bench.until(lane, n + 1)
    answer = await asyncio.wait_for(lane.offer(CancelJob(job_id="local")), PATIENCE_S)
    truth = await bench.truth()
    assert truth.problems() == []
    assert len(truth.answers) == 7
    assert truth == lane.state
    assert [fact.event.of for fact in answer] == ["local"]  # type: ignore[attr-defined]
    assert lane.lost_appends > 0


async def test_a_restart_from_a_snapshot_has_the_state_of_a_fold_from_0(bench: Bench) -> None:
    first, _ = await bench.started(snapshots=True)
    for n in range(NUMBER):
        await bench.send(command(f"c{n}"))
        await bench.deliver(first)
        await bench.until(first, n + 1)
    await bench.stop(first)
    await bench.send(command("late"))
    second, _ = await bench.started(snapshots=True)
    assert second.next_offsets()[bench.commands] == NUMBER
    await bench.deliver(second)
    await bench.until(second, NUMBER + 1)
    assert list(bench.folder.glob("*.snapshot"))
    assert second.state == await bench.truth()


async def test_a_damaged_snapshot_is_ignored(bench: Bench) -> None:
    first, _ = await bench.started(snapshots=True)
    await bench.send(command("c"))
    await bench.deliver(first)
    await bench.until(first, 1)
    await bench.stop(first)
    for path in bench.folder.glob("*.snapshot"):
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    second, _ = await bench.started(snapshots=True)
    assert second.state == await bench.truth()


async def test_silent_inputs_write_nothing_until_there_are_many(bench: Bench) -> None:
    lane, _ = await bench.started()
    for n in range(30):
        await bench.send(command(f"s{n}", reason="silent"))
    await bench.deliver(lane)
    while lane.inbox.pending:
        await asyncio.sleep(0.01)
    assert await bench.raw.end(bench.ledger) == 0
    await bench.send(command("loud"))
    await bench.deliver(lane)
    await bench.until(lane, 1)
    assert lane.cursor.inputs[bench.commands.key] == 31
    assert lane.inbox.silent == 0


async def test_many_silent_inputs_move_the_vector_with_an_empty_record(twin: Bench) -> None:
    lane, _ = await twin.started()
    for n in range(MAX_SILENT + 10):
        await twin.send(command(f"s{n}", reason="silent"))
    await twin.deliver(lane)
    async with asyncio.timeout(PATIENCE_S):
        while not lane.cursor.seq:
            await asyncio.sleep(0.01)
    assert next_of(lane.cursor.inputs[twin.commands.key]) >= MAX_SILENT
    assert (await twin.truth()).answers == {}


async def test_an_undecodable_record_is_rejected_once_with_its_digest(bench: Bench) -> None:
    lane, _ = await bench.started()
    unknown = command("u").replace(b"job.cancel.v1", b"job.cancel.v9")
    wrong = command("w").replace(b'"job_id":"job"', b'"job_id":""')
    other = command("o").replace(b"job.cancel.v1", b"node.drain.v1")
    for value in (b"not json", b"[]", unknown, wrong, other, command("good")):
        await bench.send(value)
    await bench.deliver(lane)
    await bench.until(lane, 1)
    truth = await bench.truth()
    assert set(truth.answers) == {"good"}
    assert [r.split()[0] for r in truth.rejected][:4] == ["0", "1", "2", "3"]
    assert "unknown type job.cancel.v9" in truth.rejected[2]


async def test_facts_of_another_ledger_count_only_when_its_readers_accept_them(
    bench: Bench,
) -> None:
    lane, _ = await bench.started()
    first, rival = ledger_record(1, ""), ledger_record(1, "")
    second = ledger_record(2, first.id)
    for record in (first, rival, second):
        await bench.send(encode(record), bench.placement)
    await bench.send(b"garbage", bench.placement)
    await bench.deliver(lane, bench.placement)
    await bench.until(lane, 2)
    partition = bench.partition
    assert set(lane.state.answers) == {f"placement/{partition}/1/0", f"placement/{partition}/2/0"}
    await bench.stop(lane)
    again, _ = await bench.started()
    await bench.send(encode(ledger_record(3, second.id)), bench.placement)
    await bench.deliver(again, bench.placement)
    await bench.until(again, 3)
    assert again.cursor.inputs[bench.placement.key] == (5, 3, again_id(again.cursor, bench))


async def test_local_inputs_are_answered_with_their_facts(bench: Bench) -> None:
    lane, _ = await bench.started()
    answers = [lane.offer(CancelJob(job_id=f"l{n}")) for n in range(3)]
    silent = lane.offer(CancelJob(job_id="s", reason="silent"))
    resolved = await asyncio.wait_for(asyncio.gather(*answers), PATIENCE_S)
    assert [[f.event.of for f in facts] for facts in resolved] == [["l0"], ["l1"], ["l2"]]  # type: ignore[attr-defined]
    assert await asyncio.wait_for(silent, PATIENCE_S) == []
    assert len((await bench.truth()).answers) == 3


async def test_a_wake_is_kept_without_any_input(bench: Bench) -> None:
    lane, _ = await bench.started()
    (fact,) = await asyncio.wait_for(lane.offer(CancelJob(job_id="alarm")), PATIENCE_S)
    async with asyncio.timeout(PATIENCE_S):
        # The state of a lane is ahead of its log while a decision is being appended.
        while len((truth := await bench.truth()).answers) < 2:
            await asyncio.sleep(0.01)
    assert f"wake {fact.at + 1}" in truth.answers
    assert lane.state.wake_at is None


async def test_a_batch_too_big_for_a_record_is_cut(bench: Bench) -> None:
    lane, _ = await bench.started(settings=LaneSettings(window_ms=50))
    for n in range(6):
        await bench.send(command(f"b{n}", reason="burst 400"))
    await bench.deliver(lane)
    await bench.until(lane, 2_400)
    sizes = [len(e.value or b"") for e in await bench.read(bench.ledger)]
    assert max(sizes) <= LIMIT_BYTES
    assert (await bench.truth()).problems() == []


async def test_a_decision_has_a_span_of_its_own_and_the_shell_gets_its_cause(bench: Bench) -> None:
    trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    lane, _ = await bench.started()
    await bench.send(command("c", traceparent=trace))
    await bench.deliver(lane)
    await bench.until(lane, 1)
    (record,) = accepted(bench.ledger, await bench.read(bench.ledger))
    (raw,) = record.raw()
    assert len(raw.traceparent) == len(trace)
    assert raw.traceparent != trace
    assert raw.cause == "c"
    ((facts, parents),) = bench.reports
    assert [fact.traceparent for fact in facts] == [raw.traceparent]
    assert parents == [trace]


async def test_a_tail_goes_on_from_its_cursor(bench: Bench) -> None:
    lane, flaky = await bench.started()
    flaky.accidents.extend(["none", "duplicate"])
    tail = LedgerTail(bench.broker.log(), {"admission": [bench.partition]})
    await tail.start()
    seqs = []
    for n in range(6):
        await bench.send(command(f"c{n}"))
        await bench.deliver(lane)
        await bench.until(lane, n + 1)
        if n == 3:
            seqs += await drain(tail, 4)
            cursor = Cursor.from_json(tail.cursor("admission", bench.partition).to_json())
            await tail.stop()
            tail = LedgerTail(
                bench.broker.log(), {"admission": [bench.partition]}, {bench.ledger: cursor}
            )
            await tail.start()
    seqs += await drain(tail, 6)
    await tail.stop()
    assert seqs == [1, 2, 3, 4, 5, 6]
    assert tail.caught_up


async def test_a_soft_tail_starts_at_the_end(bench: Bench) -> None:
    tp = TP("heartbeats", bench.partition)
    await bench.raw.append(tp, b"old")
    tail = TopicTail(bench.broker.log(), lossy=True)
    await tail.start_at_end([tp])
    await bench.raw.append(tp, b"new")
    entries: list[Entry] = []
    async with asyncio.timeout(PATIENCE_S):
        while not entries:
            entries = (await tail.poll(0.5)).get(tp, [])
    await tail.stop()
    assert [e.value for e in entries] == [b"new"]


def ledger_record(seq: int, prev: str) -> Record:
    event = NodeUncordoned(node_id="n1")
    stored = StoredEvent(event.TYPE, "n1", msgspec.Raw(encode_event(event)))
    return Record(new_id(), seq, prev, "w", seq, {}, pack([stored]))


def again_id(cursor: Cursor, bench: Bench) -> str:
    position = cursor.inputs[bench.placement.key]
    assert not isinstance(position, int)
    return position[2]


async def drain(tail: LedgerTail, last_seq: int) -> list[int]:
    seqs: list[int] = []
    async with asyncio.timeout(PATIENCE_S):
        while last_seq not in seqs:
            seqs += [a.record.seq for a in await tail.poll(0.3)]
    return seqs
