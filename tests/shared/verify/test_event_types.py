from __future__ import annotations

import msgspec
import pytest

from shared.contracts.base import EVENTS
from shared.ledger.record import StoredEvent, pack
from shared.projections.timeline import JOB_TYPES
from shared.verify.event_types import is_of_job, is_public, types_of


def test_types_come_in_order_and_nothing_else_is_decoded() -> None:
    events = [StoredEvent(name, "s", msgspec.Raw(b'{"a":[1]}')) for name in ("b.v1", "a.v1")]
    assert types_of(pack(events)) == ["b.v1", "a.v1"]
    assert types_of(pack([])) == []


def test_events_without_a_type_are_an_error() -> None:
    with pytest.raises(msgspec.ValidationError):
        types_of(msgspec.Raw(b'[{"subject":"s"}]'))


def test_an_unknown_type_is_not_public() -> None:
    assert not is_public("made.up.v1")
    assert not is_of_job("made.up.v1")
    assert {name for name, cls in EVENTS.items() if cls.PUBLIC} == set(filter(is_public, EVENTS))


def test_histories_have_the_types_that_the_projector_stores() -> None:
    assert set(filter(is_of_job, EVENTS)) == JOB_TYPES
