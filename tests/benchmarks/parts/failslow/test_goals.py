from __future__ import annotations

from benchmarks.parts.failslow.goals import goals_of

GOOD = {"precision": 1.0, "recall": 0.99, "job_accuracy": 0.99, "median_delay_iterations": 5}


def verdicts(**changed: float) -> list[str]:
    own = {"berth": {**GOOD, **changed}}
    result = {
        "by_jitter": {"1": own, "2": own, "4": own},
        "observations_per_s": 60_000,
        "mitigated": {"long": 0.77, "short": 0.26, "worst_fault": 0.97},
        "pipeline": {"6": 1.96},
        "pipeline_gap": {"cases": 100, "mean": 0.001, "worst": 0.015},
        "real": {"bytedance": None},
    }
    return [verdict.split(":")[0] for verdict in goals_of(result).values()]


def test_goals_are_met_or_not_by_their_figures() -> None:
    assert set(verdicts()) == {"met"}
    assert verdicts(precision=0.99).count("not met") == 3
    assert verdicts(recall=0.97).count("not met") == 3
    assert verdicts(job_accuracy=0.985).count("not met") == 2
    assert verdicts(median_delay_iterations=7).count("not met") == 3
