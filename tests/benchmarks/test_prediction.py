"""Every predictor is judged on the same jobs of a trace."""

from __future__ import annotations

from typing import Any, cast

import pytest

from benchmarks.prediction import PredictionOptions, run
from simulator.workload.locate import has_trace


async def judge(trace: str) -> dict[str, Any]:
    options = PredictionOptions(trace=trace, without_boosting=True, live_jobs=1_000)
    result = await run(options, lambda line: None)
    (judged,) = cast("list[dict[str, Any]]", result["traces"])
    return judged


@pytest.mark.parts
async def test_a_synthetic_trace_is_judged_when_there_is_no_other() -> None:
    judged = await judge("synthetic:philly")
    assert judged["jobs"] == 4000 and judged["judged"] > 1000
    predictors = judged["predictors"]
    assert set(predictors) == {"blind", "last_two", "last_two_spread", "history", "ours"}
    assert predictors["last_two"]["coverage"] < 0.5, "a single run time covers nothing"
    assert predictors["ours"]["pinball_log10_s"] < predictors["blind"]["pinball_log10_s"]
    assert judged["goals"]["pinball loss below qssf"] == "not measured"
    assert judged["goals"]["start intervals hold for 75-85 %"] == "not measured"


@pytest.mark.skipif(not has_trace("helios_vc_users"), reason="needs the shared traces")
@pytest.mark.parts
async def test_the_goals_hold_on_the_trace_that_names_users() -> None:
    goals = (await judge("helios_vc_users"))["goals"]
    assert {name for name, verdict in goals.items() if verdict == "not met"} == set()


@pytest.mark.parts
async def test_boosted_trees_are_trained_and_judged() -> None:
    result = await run(
        PredictionOptions(trace="synthetic:philly", live_jobs=1_000), lambda line: None
    )
    (judged,) = cast("list[dict[str, Any]]", result["traces"])
    assert {"qssf", "qssf_spread", "lightgbm_quantiles"} <= set(judged["predictors"])
