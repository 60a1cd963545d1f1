"""Failed joins cost their address, valid ones their token, and memory stays bounded."""

from __future__ import annotations

import pytest

from services.gateway.limits import join_limits
from services.gateway.limits.join_limits import FAILED, VALID, JoinLimits
from services.gateway.responses.problem import ApiError
from shared.http.rate import NS


def test_an_address_waits_after_its_failures_and_another_does_not() -> None:
    limits = JoinLimits()
    for _ in range(FAILED.burst):
        limits.check_address("a", 0)
        limits.note_failure("a", 0)
    with pytest.raises(ApiError, match="failed joins of one address"):
        limits.check_address("a", 0)
    limits.check_address("b", 0)
    limits.check_address("a", round(NS / FAILED.per_s))


def test_a_token_has_room_for_a_cluster() -> None:
    limits = JoinLimits()
    for _ in range(VALID.burst):
        limits.take("t", 0)
    with pytest.raises(ApiError) as refused:
        limits.take("t", 0)
    assert refused.value.status == 429 and refused.value.headers["Retry-After"] == "1"


def test_addresses_beyond_the_bound_share_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_limits, "MAX_ADDRESSES", 3)
    limits = JoinLimits()
    for number in range(2 + FAILED.burst):
        limits.note_failure(f"a{number}", 0)
    assert len(limits.failed) <= 4
    for number in range(100, 102):
        limits.note_failure(f"a{number}", 0)
    with pytest.raises(ApiError):
        limits.check_address("yet another", 0)
    limits.check_address("yet another", 1000 * NS)
