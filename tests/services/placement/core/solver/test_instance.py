"""An instance crosses a process boundary as bytes: the same bytes are the same problem."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.placement.core.pool.shape import GPU, Slot
from services.placement.core.solver.instance import (
    FreeNode,
    GangRequest,
    Instance,
    NextWorker,
    NodeClass,
    Reservation,
    RoundPlan,
    Solution,
    Start,
    Victim,
    VictimMigration,
    VictimShare,
)

COUNT = st.integers(0, 1 << 40)
NAME = st.text(max_size=8)
SLOT = st.builds(Slot, NAME, st.lists(COUNT, max_size=3).map(tuple), COUNT, COUNT, COUNT)
SLOTS = st.lists(SLOT, max_size=3).map(tuple)
PLANS = st.builds(
    RoundPlan,
    st.lists(st.builds(Start, COUNT, SLOTS), max_size=2).map(tuple),
    st.lists(
        st.builds(Reservation, COUNT, st.lists(st.tuples(NAME, COUNT), max_size=2).map(tuple)),
        max_size=2,
    ).map(tuple),
    st.lists(COUNT, max_size=2).map(tuple),
    st.lists(st.builds(VictimMigration, COUNT, SLOTS), max_size=2).map(tuple),
)


def request(gpus: int = 1, milli: int = GPU) -> GangRequest:
    return GangRequest("j", 1, gpus, milli, 0, 0, 1, 1, (0,), (GPU,), 0, 1)


@given(PLANS)
def test_an_instance_is_the_same_after_a_journey_as_bytes(plan: RoundPlan) -> None:
    share = VictimShare(0, 1, 2, 3)
    node = NodeClass(4, 1, (250,), 0, 0, 0, (FreeNode("n", (GPU, 250, 0, 0)),), (share,))
    victim = Victim("v", 1, 5, 3, request())
    instance = Instance((node,), (request(),), (victim,), NextWorker(1), 2, plan)
    body = msgspec.msgpack.encode(instance)
    again = msgspec.msgpack.decode(body, type=Instance)
    assert again == instance and msgspec.msgpack.encode(again) == body
    assert hash(again) == hash(instance)


@given(PLANS, st.dictionaries(NAME, st.integers(-(1 << 40), 1 << 40), max_size=3))
def test_a_solution_is_the_same_after_a_journey_as_bytes(
    plan: RoundPlan, terms: dict[str, int]
) -> None:
    solution = Solution(plan, "optimal", 5, 4, 6, terms, exact=False)
    body = msgspec.msgpack.encode(solution)
    assert msgspec.msgpack.decode(body, type=Solution) == solution


@pytest.mark.parametrize(("gpus", "milli"), [(1, 999), (1, 1)])
def test_less_than_one_gpu_is_a_share(gpus: int, milli: int) -> None:
    assert request(gpus, milli).is_share
    assert not request(gpus, GPU).is_share and not request(0, milli).is_share


def test_an_instance_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        request().gpus = 2  # type: ignore[misc]
