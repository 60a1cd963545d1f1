"""The name of a partition in an input vector."""

from __future__ import annotations

from shared.ledger.partition import TP


def test_partitions_of_all_topics_have_names_of_their_own() -> None:
    assert TP("events.ada", 3).key == "events.ada-3"
    assert TP("events", 13).key != TP("events-1", 3).key
