"""Bounds of the process and of each tenant, which end with the requests."""

from __future__ import annotations

import pytest

from services.throttle.proxy.open_requests import OpenRequestLimits, OpenRequests
from services.throttle.relay.errors import ErrorAnswer

LIMITS = OpenRequestLimits(requests=3, tenant_requests=2, body_bytes=100, tenant_body_bytes=60)


def test_requests_of_the_process_are_bounded() -> None:
    open_requests = OpenRequests(LIMITS)
    with open_requests.enter(), open_requests.enter(), open_requests.enter():
        with pytest.raises(ErrorAnswer) as refused:
            open_requests.enter()
        assert (refused.value.status, refused.value.code) == (503, "process_busy")
        assert refused.value.headers["retry-after"] == "1"
    with open_requests.enter():
        assert open_requests.all.requests == 1


def test_requests_of_a_tenant_are_bounded_by_its_own() -> None:
    open_requests = OpenRequests(LIMITS)
    with (
        open_requests.enter() as first,
        open_requests.enter() as second,
        open_requests.enter() as third,
    ):
        first.assign_to("a")
        second.assign_to("a")
        with pytest.raises(ErrorAnswer) as refused:
            third.assign_to("a")
        assert (refused.value.status, refused.value.code) == (429, "tenant_busy")
        third.assign_to("b")
    assert open_requests.by_tenant == {}
    assert open_requests.all.requests == 0


@pytest.mark.parametrize(
    ("tenant", "sizes", "code"), [("a", (60, 1), "tenant_busy"), ("b", (50,), "process_busy")]
)
def test_bytes_of_bodies_are_bounded(tenant: str, sizes: tuple[int, ...], code: str) -> None:
    open_requests = OpenRequests(LIMITS)
    with open_requests.enter() as other, open_requests.enter() as entry:
        other.assign_to("other")
        if tenant == "b":
            other.add_bytes(60)
        entry.assign_to(tenant)
        with pytest.raises(ErrorAnswer) as refused:
            for size in sizes:
                entry.add_bytes(size)
        assert refused.value.code == code
    assert open_requests.all.body_bytes == 0
    assert open_requests.by_tenant == {}


def test_bytes_of_answers_count_until_the_client_has_them_and_are_never_refused() -> None:
    open_requests = OpenRequests(LIMITS)
    with open_requests.enter() as entry:
        entry.assign_to("a")
        entry.hold_answer(1_000)
        assert open_requests.all.body_bytes == open_requests.by_tenant["a"].body_bytes == 1_000
        with open_requests.enter() as next_entry, pytest.raises(ErrorAnswer):
            next_entry.assign_to("a")
            next_entry.add_bytes(1)
    assert open_requests.all.body_bytes == 0
