"""The goals of the run-time predictor, per trace."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.parts.goals import met
from benchmarks.parts.prediction.measures import PredictionErrors

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
