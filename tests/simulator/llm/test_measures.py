from __future__ import annotations

import pytest

from simulator.llm.measures import latencies, measure
from simulator.llm.requests import Outcome, TraceRequest


def outcome(
    tenant: str, arrival_s: float, started_s: float, finished_s: float, units: int = 100
) -> Outcome:
    """A request of so many units of service, a third of a prompt, evenly served."""
    request = TraceRequest(f"{tenant}{arrival_s}", tenant, arrival_s, units // 2, units // 4)
    return Outcome(request, False, started_s, started_s, finished_s)


def test_equal_services_have_no_gap() -> None:
    outcomes = [outcome(tenant, n, n, n + 1) for tenant in "ab" for n in range(100)]
    measures = measure(outcomes)
    assert measures.max_gap == measures.mean_gap == measures.accumulated_gap == 0
    assert measures.tokens_per_s == pytest.approx(2 * 75, rel=0.02)


def test_a_tenant_that_waits_while_another_is_served_is_behind() -> None:
    outcomes = [outcome("a", 0, n, n + 1) for n in range(100)]
    outcomes += [outcome("b", 0, 100 + n, 101 + n) for n in range(100)]
    measures = measure([*outcomes, outcome("c", 100, 200, 201)])
    assert measures.max_gap > 80
    assert measures.accumulated_gap == pytest.approx(9800, rel=0.02)


def test_cut_interactions_waste_what_was_served_of_them() -> None:
    first = TraceRequest("1", "a", 0.0, 10, 5, interaction="i")
    later = TraceRequest("2", "a", 1.0, 10, 5, interaction="i", stage=1)
    measures = measure([Outcome(first, False, 0.0, 0.5, 1.0), Outcome(later, refused=True)])
    assert (measures.cut_midway, measures.wasted_tokens, measures.refused) == (1, 15, 1)


def test_waits_are_by_tenant() -> None:
    rows = latencies([outcome("a", 0, 2, 3), outcome("b", 0, 4, 5)])
    assert rows["a"]["queued_p99_s"] == 2
    assert rows["b"]["latency_p50_s"] == 5


def test_a_study_without_service_has_no_measures() -> None:
    with pytest.raises(ValueError, match="no request"):
        measure([Outcome(TraceRequest("1", "a", 0.0, 1, 1), refused=True)])
