from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.throttle.core.disciplines.turns import QueueTurns, TurnProfile

queues = st.lists(
    st.builds(
        QueueTurns,
        st.integers(0, 50).map(lambda number: f"t{number}"),
        st.floats(0, 1000),
        st.floats(1, 500),
        st.integers(1, 50),
        st.floats(1, 500),
    ),
    unique_by=lambda queue: queue.tenant,
    max_size=20,
)


@given(queues, st.floats(-10, 30_000), st.integers(0, 50))
def test_a_profile_has_the_sum_of_its_queues_but_one(
    known: list[QueueTurns], counter: float, without: int
) -> None:
    others = [queue for queue in known if queue.tenant != f"t{without}"]
    turns = TurnProfile.of(known).before(counter, f"t{without}")
    counts = [queue.before(counter) for queue in others]
    assert turns.requests == pytest.approx(sum(counts), rel=1e-6, abs=1e-6)
    tokens = sum(n * queue.tokens for n, queue in zip(counts, others, strict=True))
    assert turns.tokens == pytest.approx(tokens, rel=1e-6, abs=1e-4)


def test_a_queue_has_a_turn_for_each_step_of_its_counter_and_no_more_than_its_requests() -> None:
    queue = QueueTurns("a", 10.0, 20.0, 3, 7.0)
    assert [queue.before(counter) for counter in (9, 10, 30, 60, 900)] == [0, 1, 1.5, 3, 3]
    assert TurnProfile.of(()).before(100, "a") == (0.0, 0.0)
