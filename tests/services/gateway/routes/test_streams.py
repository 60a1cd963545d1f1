"""The start of a stream of events, and the events that belong to it."""

from __future__ import annotations

import pytest

from services.gateway.core.field_errors import InvalidBody
from services.gateway.responses.problem import ApiError
from services.gateway.routes.streams import _filter, _start, _stream
from services.gateway.streams.hub import EventHeader
from services.gateway.streams.sse import event_frames
from services.gateway.wiring import Gateway
from shared.contracts.registry import Bearer
from tests.services.gateway.wired import gateway

HELD = EventHeader("job.held.v1", "j1", "ada")


def streaming(*vector: int) -> Gateway:
    """Return a gateway whose hub has read up to these offsets."""
    made = gateway()
    made.hub.partitions, made.hub.vector = len(vector), list(vector)
    return made


def test_a_stream_begins_now_at_the_start_or_at_an_event_id() -> None:
    there = streaming(7, 9)
    assert _start(there, "") is None
    assert _start(there, "start") == [0, 0]
    assert _start(there, "3.4") == [3, 4]


@pytest.mark.parametrize("since", ["3", "3.4.5", "3.-4", "x"])
def test_what_is_no_event_id_is_refused(since: str) -> None:
    with pytest.raises(InvalidBody, match="must be an event id of this stream"):
        _start(streaming(7, 9), since)


def test_no_stream_begins_before_the_hub_has_a_position() -> None:
    with pytest.raises(ApiError, match="event stream not started yet") as refused:
        _start(gateway(), "start")
    assert refused.value.status == 503


@pytest.mark.parametrize(
    ("tenant", "types", "subject", "is_accepted"),
    [
        (None, (), "", True),
        ("ada", (), "", True),
        ("bob", (), "", False),
        ("ada", ("job.held.v1", "x"), "j1", True),
        ("ada", ("job.placed.v1",), "", False),
        (None, (), "j2", False),
    ],
)
def test_a_filter_is_by_tenant_type_and_subject(
    tenant: str | None, types: tuple[str, ...], subject: str, is_accepted: bool
) -> None:
    assert _filter(tenant, frozenset(types), subject)(HELD) is is_accepted


def test_a_stream_beyond_the_limit_is_refused() -> None:
    there, bearer = streaming(0), Bearer("k", "viewer", "ada")
    frames = event_frames(there.hub, None, lambda header: True, lambda: True)
    for _ in range(there.settings.key_streams):
        _stream(there, bearer, frames)
    with pytest.raises(ApiError, match="at most 16 are allowed at once") as refused:
        _stream(there, bearer, frames)
    assert refused.value.headers["Retry-After"] == "10"
