"""The goals of the run-time predictor, per trace."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.parts.goals import met
from benchmarks.parts.prediction.measures import PredictionErrors
from benchmarks.parts.prediction.starts import EstimatedStarts

COVERAGE, BAND = 0.8, 0.03
NEARLY = 1.01
"""Ratio of pinball losses up to which history is as good as the blind predictor."""
RIVALS = (
    "last_two",
    "last_two_spread",
    "qssf",
    "qssf_spread",
    "lightgbm_quantiles",
    "lightgbm_unseen",
)
OURS = "ours"
STARTS = {
    "starts": "start intervals hold for 75-85 %",
    "starts_easy": "start intervals with EASY hold for 75-85 %",
    "starts_live": "live start intervals hold for 75-85 %",
    "starts_live_easy": "live start intervals with EASY hold for 75-85 %",
}
"""Goals by the key of the result that they judge."""


def goals_of(errors: Mapping[str, PredictionErrors], has_owners: bool) -> dict[str, str]:
    """Return `met` or `not met` per goal; `not measured` for a rival that did not run.

    In a trace that names tenants or users history must beat the blind predictor, elsewhere it may
    be one percent worse.
    """
    ours = errors[OURS]
    goals = {"coverage of p10-p90 is 80 % +- 3": met(abs(ours.coverage - COVERAGE) <= BAND)}
    for rival in RIVALS:
        result = "not measured"
        if rival in errors:
            result = met(ours.pinball_log10_s < errors[rival].pinball_log10_s)
        goals[f"pinball loss below {rival}"] = result
    ratio = ours.pinball_log10_s / errors["blind"].pinball_log10_s
    name = "pinball loss below blind" if has_owners else "pinball loss within 1 % of blind"
    goals[name] = met(ratio < 1.0 if has_owners else ratio <= NEARLY)
    return goals


def goals_of_starts(starts: Mapping[str, EstimatedStarts | None]) -> dict[str, str]:
    """Return whether the 80 % intervals of starts held for 75-85 % of the jobs that waited."""
    return {
        STARTS[key]: met(0.75 <= one.coverage <= 0.85) if one else "not measured"
        for key, one in starts.items()
    }
