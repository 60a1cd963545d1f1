"""Measures of a study: how unequal services were, waits, throughput and waste.

A service is counted as in VTC's evaluation: a prompt token as 1, when the first token comes; an
output token as 2, evenly until the last one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.llm.requests import Outcome

Floats = NDArray[np.float64]
WINDOW_S = 60
WARM_UP_S = 30
MOST_PAIRED = 64
"""Tenants with the most requests that are compared in pairs; more would take too long."""


@dataclass(frozen=True, slots=True)
class StudyMeasures:
    """The gaps are units per second of a window, and units of service."""

    max_gap: float
    mean_gap: float
    accumulated_gap: float
    """Largest change of the difference of two services while both tenants waited."""
    tokens_per_s: float
    """Tokens of prompts and answers served, from the first arrival to the last end."""
    refused: int
    cut_midway: int
    """Interactions of which a later call was refused."""
    wasted_tokens: int
    """Tokens served for those interactions."""


def measure(outcomes: Sequence[Outcome]) -> StudyMeasures:
    """Measure all requests of a study; raises ValueError if none was served."""
    served = [outcome for outcome in outcomes if not outcome.refused]
    if not served:
        raise ValueError("no request was served")
    gaps = _window_gaps(outcomes, served)
    first_s = min(outcome.request.arrival_s for outcome in outcomes)
    span_s = max(outcome.finished_s for outcome in served) - first_s
    cut = {
        outcome.request.interaction
        for outcome in outcomes
        if outcome.refused and outcome.request.stage
    }
    wasted = [outcome for outcome in served if outcome.request.interaction in cut]
    return StudyMeasures(
        max_gap=round(float(gaps.max(initial=0.0)), 1),
        mean_gap=round(float(gaps.mean()) if len(gaps) else 0.0, 1),
        accumulated_gap=round(_accumulated_gap(served)),
        tokens_per_s=round(_tokens(served) / span_s, 1),
        refused=len(outcomes) - len(served),
        cut_midway=len(cut),
        wasted_tokens=_tokens(wasted),
    )


def latencies(outcomes: Sequence[Outcome]) -> dict[str, dict[str, float]]:
    """Return s in the queue and to the end by tenant, p50 and p99 each, of what was served."""
    by_tenant: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if not outcome.refused:
            by_tenant[outcome.request.tenant].append(outcome)
    return {
        tenant: {
            "requests": float(len(served)),
            "queued_p50_s": percentile([outcome.queued_s for outcome in served], 50),
            "queued_p99_s": percentile([outcome.queued_s for outcome in served], 99),
            "latency_p50_s": percentile([_latency_s(outcome) for outcome in served], 50),
            "latency_p99_s": percentile([_latency_s(outcome) for outcome in served], 99),
        }
        for tenant, served in sorted(by_tenant.items())
    }


def percentile(values: Sequence[float], percent: float) -> float:
    return round(float(np.percentile(values, percent)), 2)


def _latency_s(outcome: Outcome) -> float:
    return outcome.finished_s - outcome.request.arrival_s


def _tokens(served: Sequence[Outcome]) -> int:
    return sum(outcome.request.prompt_tokens + outcome.request.output_tokens for outcome in served)


def _places(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Return the tenants in rows, the one with the most requests first."""
    counts: dict[str, int] = defaultdict(int)
    for outcome in outcomes:
        counts[outcome.request.tenant] += 1
    ranked = sorted(counts, key=lambda tenant: (-counts[tenant], tenant))
    return {tenant: place for place, tenant in enumerate(ranked)}


def _services(served: Sequence[Outcome], places: dict[str, int]) -> Floats:
    """Return the service of each tenant in each second."""
    seconds = int(max(outcome.finished_s for outcome in served)) + 2
    services = np.zeros((len(places), seconds))
    for outcome in served:
        request, row = outcome.request, services[places[outcome.request.tenant]]
        first, last = int(outcome.first_s), int(outcome.finished_s)
        row[first] += request.prompt_tokens
        units = 2.0 * request.output_tokens
        if first == last:
            row[first] += units
            continue
        rate = units / (outcome.finished_s - outcome.first_s)
        row[first] += rate * (first + 1 - outcome.first_s)
        row[first + 1 : last] += rate
        row[last] += rate * (outcome.finished_s - last)
    return services


def _window_gaps(outcomes: Sequence[Outcome], served: Sequence[Outcome]) -> Floats:
    """Return VTC's gap in windows about each second, from the warm-up to the last arrival.

    It sums over tenants by how much each got less than the one that got the most, at most by how
    much it before for more or less. Refused requests do not count as before for.
    """
    places = _places(outcomes)
    services = _services(served, places)
    demands = np.zeros_like(services)
    for outcome in served:
        request = outcome.request
        units = request.prompt_tokens + 2 * request.output_tokens
        demands[places[request.tenant], int(request.arrival_s)] += units
    last_s = int(max(outcome.request.arrival_s for outcome in outcomes))
    centres = np.arange(WARM_UP_S, last_s + 1)
    begins = np.maximum(centres - WINDOW_S // 2, 0)
    ends = np.minimum(centres + WINDOW_S // 2, services.shape[1])
    obtained, demanded = (_in_windows(units, begins, ends) for units in (services, demands))
    below_most = obtained.max(axis=0) - obtained
    gaps: Floats = np.minimum(below_most, np.abs(demanded - obtained)).sum(axis=0)
    return gaps


def _in_windows(units: Floats, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> Floats:
    sums = np.concatenate([np.zeros((len(units), 1)), units.cumsum(axis=1)], axis=1)
    rates: Floats = (sums[:, ends] - sums[:, begins]) / WINDOW_S
    return rates


def _accumulated_gap(served: Sequence[Outcome]) -> float:
    places = _places(served)
    totals = _services(served, places).cumsum(axis=1)
    waits = np.zeros(totals.shape, dtype=bool)
    for outcome in served:
        since, until = int(outcome.request.arrival_s) + 1, int(outcome.started_s)
        waits[places[outcome.request.tenant], since:until] = True
    rows = range(min(len(places), MOST_PAIRED))
    pairs = ((one, other) for one in rows for other in range(one))
    return max(
        (
            _largest_change(totals[one] - totals[other], waits[one] & waits[other])
            for one, other in pairs
        ),
        default=0.0,
    )


def _largest_change(differences: Floats, both_wait: NDArray[np.bool_]) -> float:
    """Return the largest change within one time in which both wait."""
    seconds = np.flatnonzero(both_wait)
    if not len(seconds):
        return 0.0
    cuts = np.flatnonzero(np.diff(seconds) > 1) + 1
    return max(float(np.ptp(differences[part])) for part in np.split(seconds, cuts))
