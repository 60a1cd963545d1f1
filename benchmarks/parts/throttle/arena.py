"""The table of VTC's paper: policies on a trace of requests, with our model of its engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from services.throttle.core.disciplines.catalog import DISCIPLINES
from services.throttle.core.disciplines.limits import Limits
from simulator.llm.measures import measure
from simulator.llm.requests import TraceRequest
from simulator.llm.study import Study

POLICIES = ("fcfs", "lcf", "rpm", "vtc", "vtc_predict", "fairserve", "berth")
QUICK_POLICIES = ("fcfs", "vtc", "vtc_predict", "berth")
LIMITS = Limits(tenant_per_minute=20)
"""One of the limits of VTC's evaluation; `berth` does not throttle in this table."""
KEYS = ("max_gap", "mean_gap", "accumulated_gap", "tokens_per_s", "refused")

Row = dict[str, float]


def arena_row(policy: str, requests: Sequence[TraceRequest]) -> Row:
    """Return gaps, throughput and refused requests of one policy."""
    outcomes = Study(DISCIPLINES[policy](LIMITS)).run(requests)
    measures = asdict(measure(outcomes))
    return {key: measures[key] for key in KEYS}
