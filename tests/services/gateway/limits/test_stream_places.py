"""Open streams of one key leave places for everybody else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from services.gateway.limits.stream_places import StreamLimits, StreamPlaces
from services.gateway.responses.problem import ApiError
from shared.contracts.registry import Bearer

ADA, VIEW, BOB, OP = (
    Bearer("ada", "viewer", "ada"),
    Bearer("ada-2", "viewer", "ada"),
    Bearer("bob", "viewer", "bob"),
    Bearer("op", "operator", None),
)


def no_tenants() -> list[str]:
    return []


def opened(places: StreamPlaces, bearer: Bearer, tries: int) -> list[Callable[[], None]]:
    taken = []
    for _ in range(tries):
        try:
            taken.append(places.take(bearer))
        except ApiError as error:
            assert error.status in (429, 503) and error.headers["Retry-After"]
    return taken


def test_a_key_that_opens_64_streams_leaves_places_for_its_tenant_and_all_others() -> None:
    places = StreamPlaces(StreamLimits(64, 24, 16), no_tenants)
    assert len(opened(places, ADA, 64)) == 16
    assert len(opened(places, VIEW, 64)) == 8, "the tenant's bound"
    assert len(opened(places, BOB, 1)) == len(opened(places, OP, 1)) == 1
    assert (places.taken, places.of_tenant("ada")) == (26, 24)


def test_all_keys_of_a_user_share_its_places() -> None:
    places = StreamPlaces(StreamLimits(64, 24, 16), no_tenants)
    first, second = (bearer._replace(user="eve") for bearer in (ADA, VIEW))
    assert len(opened(places, first, 10)) == 10
    assert len(opened(places, second, 10)) == 6
    assert len(opened(places, ADA, 1)) == len(opened(places, BOB._replace(user="eve"), 1)) == 1


def test_keys_of_a_user_share_its_turns_and_others_have_their_own() -> None:
    places = StreamPlaces(StreamLimits(64, 24, 16), no_tenants)
    first, second = (bearer._replace(user="eve") for bearer in (ADA, VIEW))
    turns = places.turns_of(first)
    assert turns is places.turns_of(second)
    others = [places.turns_of(bearer) for bearer in (ADA, VIEW, BOB, OP)]
    assert len({id(one) for one in (turns, *others)}) == 5


def test_a_place_is_given_back_once() -> None:
    places = StreamPlaces(StreamLimits(64, 24, 1), no_tenants)
    give_back = places.take(ADA)
    with pytest.raises(ApiError, match=r"key:ada: 1 streams are open; at most 1 .*KEY_STREAMS"):
        places.take(ADA)
    give_back()
    give_back()
    places.take(ADA)
    assert places.taken == 1


def test_without_any_place_the_answer_is_503() -> None:
    places = StreamPlaces(StreamLimits(1, 9, 9), no_tenants)
    places.take(ADA)
    with pytest.raises(ApiError, match="BERTH_STREAMS") as refused:
        places.take(BOB)
    assert refused.value.status == 503


def bearer_of(tenant: str, key: int) -> Bearer:
    return Bearer(f"{tenant}-{key}", "viewer", tenant)


def test_tenants_at_their_bound_leave_a_place_for_each_that_has_none() -> None:
    tenants = [f"t{number}" for number in range(11)]
    places = StreamPlaces(StreamLimits(256, 32, 16), lambda: tenants)
    for tenant in tenants[:8]:
        for key in range(2):
            opened(places, bearer_of(tenant, key), 16)
    assert places.taken == 256 - 3 - 1, "one of each other tenant, and one of operators"
    with pytest.raises(ApiError, match=r"4 of them kept for tenants with none") as refused:
        places.take(bearer_of("t7", 2))
    assert refused.value.status == 503
    for bearer in (*(bearer_of(tenant, 0) for tenant in tenants[8:]), OP):
        places.take(bearer)
    assert places.taken == 256


def test_no_more_than_half_of_the_places_are_kept() -> None:
    places = StreamPlaces(StreamLimits(8, 32, 16), lambda: [f"t{number}" for number in range(100)])
    assert len(opened(places, bearer_of("t0", 0), 16)) == 4
    firsts = [bearer_of(f"t{number}", 0) for number in range(1, 9)]
    assert sum(len(opened(places, bearer, 1)) for bearer in firsts) == 4


def test_a_place_that_is_given_back_is_kept_again() -> None:
    places = StreamPlaces(StreamLimits(4, 32, 16), lambda: ["ada", "bob"])
    first = places.take(BOB)
    assert len(opened(places, ADA, 9)) == 2, "one is kept for operators"
    first()
    assert len(opened(places, ADA, 9)) == 0 and len(opened(places, BOB, 9)) == 1
