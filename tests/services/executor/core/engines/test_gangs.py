"""A gang is known in an engine by its place in the ledger, and not by the engine's own id."""

from __future__ import annotations

import pytest

from services.executor.core.engines.gangs import Identity, gangs_of, place_of
from tests.services.executor.core.engines.looks import (
    IDENTITY,
    EngineHistory,
    gang_of,
    placed_history,
    started_history,
)


def test_an_identity_is_read_back_from_its_text() -> None:
    assert Identity.parse(IDENTITY) == ("here", "gpu", "1/5/0")


@pytest.mark.parametrize("comment", ["", "notes: mine", "berth", "berth:a:b", "berth:a:b:c:d"])
def test_other_comments_are_no_identity(comment: str) -> None:
    assert Identity.parse(comment) is None


def test_a_gang_has_its_workers_by_rank_and_its_nodes_by_their_lowest_rank() -> None:
    gang = gang_of(placed_history())
    assert [worker.launch.rank for worker in gang.workers] == [0, 1, 2]
    assert gang.nodes == ("n2", "n1") and gang.is_whole
    assert not gang.is_started and not gang.is_stopped and gang.master_port is None
    assert gang_of(started_history()).is_started and gang_of(started_history()).master_port == 4321


def test_a_lane_without_workers_has_no_gangs() -> None:
    assert gangs_of(EngineHistory().state, "here", "gpu") == {}
    assert place_of("1/5/0/12") == "1/5/0"
