"""Open streams of one key leave places for everybody else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from services.gateway.problem import ApiError
from services.gateway.stream_places import StreamLimits, StreamPlaces
from shared.contracts.registry import Bearer

ADA, VIEW, BOB, OP = (
    Bearer("ada", "viewer", "ada"),
    Bearer("ada-2", "viewer", "ada"),
    Bearer("bob", "viewer", "bob"),
    Bearer("op", "operator", None),
)


def opened(places: StreamPlaces, bearer: Bearer, tries: int) -> list[Callable[[], None]]:
    taken = []
    for _ in range(tries):
        try:
            taken.append(places.take(bearer))
        except ApiError as error:
            assert error.status == 429 and error.headers["Retry-After"]
    return taken


def test_a_key_that_opens_64_streams_leaves_places_for_its_tenant_and_all_others() -> None:
    places = StreamPlaces(StreamLimits(64, 24, 16))
    assert len(opened(places, ADA, 64)) == 16
    assert len(opened(places, VIEW, 64)) == 8, "the tenant's bound"
    assert len(opened(places, BOB, 1)) == len(opened(places, OP, 1)) == 1
    assert (places.taken, places.of_key(ADA), places.of_tenant("ada")) == (26, 16, 24)


def test_a_place_is_given_back_once() -> None:
    places = StreamPlaces(StreamLimits(64, 24, 1))
    give_back = places.take(ADA)
    with pytest.raises(ApiError, match=r"key:ada: 1 streams are open; at most 1 .*KEY_STREAMS"):
        places.take(ADA)
    give_back()
    give_back()
    places.take(ADA)
    assert places.taken == 1


def test_without_any_place_the_answer_is_503() -> None:
    places = StreamPlaces(StreamLimits(1, 9, 9))
    places.take(ADA)
    with pytest.raises(ApiError, match="BERTH_STREAMS") as refused:
        places.take(BOB)
    assert refused.value.status == 503
