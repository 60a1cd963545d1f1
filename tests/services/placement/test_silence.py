"""Silence is counted by whoever listened."""

from __future__ import annotations

from services.placement.silence import Silence, chunks
from shared.contracts.reports import Alive

A, B = ("a", "i1"), ("b", "i1")


def looked(
    silence: Silence, until_s: float, *known: tuple[str, str], sender: str = ""
) -> list[str]:
    """Two looks per second until then, with a heartbeat of `sender` before each."""
    result: dict[str, float] = {}
    for step in range(1, int(until_s * 2) + 1):
        if sender:
            silence.note({sender: Alive(incarnation="i1")}, step / 2)
        result = silence.look(known, 30.0, step / 2)
    return sorted(result)


def test_a_node_is_silent_after_its_lease_and_not_before() -> None:
    assert looked(Silence(0.0), 30, A, B, sender="a") == []
    assert looked(Silence(0.0), 31, A, B, sender="a") == ["b"]


def test_a_sender_an_older_incarnation_does_not_count() -> None:
    assert looked(Silence(0.0), 31, ("a", "i2"), sender="a") == ["a"]


def test_a_reader_that_was_away_gives_everybody_a_new_lease() -> None:
    silence = Silence(0.0)
    assert looked(silence, 10, A) == []
    assert silence.look([A], 30.0, 100.0) == {}
    assert silence.look([A], 30.0, 101.0) == {}


def test_heartbeats_of_unknown_nodes_leave_nothing_behind() -> None:
    silence = Silence(0.0)
    silence.note({f"n{n}": Alive(incarnation="i") for n in range(1000)}, 1.0)
    assert silence._last_s == {}


def test_silent_nodes_are_offered_a_few_at_a_time() -> None:
    assert list(chunks({"c": 1.0, "a": 1.0, "b": 1.0}, 2)) == [["a", "b"], ["c"]]
