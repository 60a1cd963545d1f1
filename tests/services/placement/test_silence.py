"""Silence is counted from the reading of a heartbeat that is newer than all before."""

from __future__ import annotations

from services.placement.core.pool.node import NotedSilence
from services.placement.silence import Silence, SilenceKey, chunks
from shared.contracts.reports import Alive, Heartbeats

A = SilenceKey("a", "i1", "1.0")


def beat(incarnation: str = "i1", sent_boot_ms: int | None = 1) -> Heartbeats:
    alive = Alive(incarnation=incarnation, sent_boot_ms=sent_boot_ms)
    return Heartbeats(executor_id="e", nodes={"a": alive})


def watching(*lives: SilenceKey, at_s: float = 0.0) -> Silence:
    silence = Silence()
    silence.watch(lives, at_s)
    return silence


def test_a_node_is_heard_when_it_is_first_seen_and_with_each_newer_heartbeat() -> None:
    silence = watching(A, at_s=10)
    assert silence.of("a").silent_ms(12.5) == 2500
    silence.note(0, beat(sent_boot_ms=5), 20)
    assert silence.of("a").silent_ms(21) == 1000
    assert silence.of("a").silent_ms(19) == 0, "heard after that moment"


def test_an_old_or_repeated_heartbeat_does_not_count() -> None:
    silence = watching(A)
    silence.note(0, beat(sent_boot_ms=5), 10)
    silence.note(1, beat(sent_boot_ms=5), 20)
    silence.note(2, beat(sent_boot_ms=4), 20)
    assert silence.of("a").heard_s == 10
    silence.note(3, beat(sent_boot_ms=6), 20)
    assert silence.of("a").heard_s == 20


def test_a_heartbeat_that_was_read_before_a_silence_does_not_end_it() -> None:
    silence = watching(A)
    silence.note(0, beat(sent_boot_ms=5), 10)
    silence.note_silent("a", 8000)
    assert silence.take_heard() == []
    silence.note(1, beat(sent_boot_ms=6), 20)
    assert silence.take_heard() == [A]
    assert silence.take_heard() == []


def test_a_heartbeat_of_an_older_executor_always_counts() -> None:
    silence = watching(A)
    silence.note(0, beat(sent_boot_ms=None), 10)
    silence.note(1, beat(sent_boot_ms=None), 20)
    assert silence.of("a").heard_s == 20


def test_a_sender_of_another_incarnation_does_not_count() -> None:
    silence = watching(A)
    silence.note(0, beat("i2"), 10)
    assert silence.of("a").heard_s == 0


def test_a_new_incarnation_and_dropped_terms_begin_anew() -> None:
    silence = watching(A)
    for at_s, life in ((10, A._replace(incarnation="i2")), (20, A._replace(terms_id="2.0"))):
        silence.watch([life], at_s)
        assert silence.of("a").heard_s == at_s
        silence.watch([life], at_s + 5)
        assert silence.of("a").heard_s == at_s


def test_a_reader_goes_on_with_the_count_of_an_earlier_one() -> None:
    silence = Silence()
    silence.resume(A, NotedSilence(silent_ms=40_000, offset=7), 100)
    silence.watch([A], 101)
    assert silence.of("a").silent_ms(101) == 41_000
    silence.note(6, beat(), 102)
    assert silence.of("a").silent_ms(102) == 42_000, "the earlier reader has read it"
    silence.note(7, beat(), 103)
    assert silence.of("a").silent_ms(103) == 0


def test_after_lost_records_all_counts_begin_anew() -> None:
    silence = Silence()
    silence.resume(A, NotedSilence(silent_ms=40_000, offset=7), 100)
    silence.begin_anew(110)
    assert silence.of("a").silent_ms(111) == 1000


def test_heartbeats_of_unknown_nodes_leave_nothing_behind() -> None:
    silence = watching()
    silence.note(0, beat(), 1.0)
    assert silence._nodes == {}


def test_silent_nodes_are_offered_a_few_at_a_time() -> None:
    assert list(chunks(["a", "b", "c"], 2)) == [["a", "b"], ["c"]]
