"""Bytes are counted by topic and by type, and rankings by ledger in both of their forms."""

from __future__ import annotations

import pytest

from benchmarks.parts.year.jobs import play_pool
from benchmarks.parts.year.volumes import RANKINGS, ranking_volumes, topic_bytes, type_volumes
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.nodes import NodeCordoned
from shared.contracts.ranking import QueueRanked


def test_bytes_are_counted_by_topic_and_type() -> None:
    broker = MemoryBroker()
    LedgerWriter(broker, "placement").write([NodeCordoned(node_id="n1")] * 3)
    assert list(topic_bytes(broker)) == ["placement"]
    volumes = type_volumes(broker, "placement")
    assert volumes[NodeCordoned.TYPE].events == 3
    assert 0 < volumes[NodeCordoned.TYPE].bytes < topic_bytes(broker)["placement"]


def test_the_types_of_rankings_exist() -> None:
    assert QueueRanked.TYPE in RANKINGS["priority"]


@pytest.mark.slow
def test_changes_are_smaller_than_whole_rankings() -> None:
    both = [
        ranking_volumes(play_pool(0.02, 10_000, rank_changes=on).broker) for on in (True, False)
    ]
    for ledger in RANKINGS:
        changes, whole = (volumes[ledger] for volumes in both)
        assert changes["rankings"] == whole["rankings"] > 0
        assert changes["bytes"] < whole["bytes"]
