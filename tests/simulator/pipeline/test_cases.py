"""Random pipelines differ, and are the same for a seed."""

from __future__ import annotations

from simulator.pipeline.cases import random_pipeline


def test_a_seed_names_a_case() -> None:
    assert random_pipeline(3) == random_pipeline(3)
    cases = [random_pipeline(seed) for seed in range(50)]
    assert {case.stages for case in cases} == {2, 3, 4, 5}
    assert any(case.memory is None for case in cases)
    assert all(case.microbatches >= case.stages for case in cases)
