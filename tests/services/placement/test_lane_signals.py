"""A lane's signal is set by events of its types alone."""

from __future__ import annotations

from services.placement.lane_signals import LaneSignals
from shared.contracts.placement import RoundOpened
from shared.contracts.pools import PoolConfigured
from tests.services.placement.core.scheduled.pools import typed


def test_an_event_of_another_type_sets_no_signal() -> None:
    facts = typed().facts
    configured = LaneSignals(PoolConfigured)
    configured.accepted(facts)
    assert configured.of(0).is_set()
    assert not configured.of(1).is_set()
    rounds = LaneSignals(RoundOpened)
    rounds.accepted(facts)
    assert not rounds.of(0).is_set()
