"""A report of NVRx keeps its scores; ranks without a score (NaN) are left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.failslow.core.readers.nvrx import StragglerReport, read_report

REPORT: dict[str, Any] = {
    "gpu_relative_perf_scores": {"0": 1.0, "1": 0.5},
    "section_relative_perf_scores": {
        "fwd": {"0": 0.9, "1": 1.0},
        "rank0_only": {"0": float("nan"), "1": 0.7},
    },
    "gpu_individual_perf_scores": {"0": 1.0, "1": 1.0},
    "section_individual_perf_scores": {},
    "rank_to_node": {"0": "n1", "1": "n2"},
    "local_section_summaries": {},
    "generate_report_elapsed_time": 0.01,
    "gather_on_rank0": True,
    "rank": 0,
}


def test_a_report_is_read() -> None:
    assert read_report(json.dumps(REPORT)) == StragglerReport(
        gpu={0: 1.0, 1: 0.5},
        sections={"fwd": {0: 0.9, 1: 1.0}, "rank0_only": {1: 0.7}},
        nodes={0: "n1", 1: "n2"},
    )
    assert read_report(json.dumps(REPORT)).scores() == {0: 1.0, 1: 0.5}


def test_without_kernels_the_worst_section_of_a_rank_counts() -> None:
    report = read_report(json.dumps({**REPORT, "gpu_relative_perf_scores": {}}))
    assert report.scores() == {0: 0.9, 1: 0.7}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "neither gpu_relative_perf_scores nor"),
        ('{"gpu_relative_perf_scores": [1]}', "an object by rank"),
        ('{"gpu_relative_perf_scores": {"one": 1}}', "'one': 1; a score is allowed"),
        ('{"gpu_relative_perf_scores": {"1": "bad"}}', "'1': 'bad'; a score is allowed"),
        ('{"section_relative_perf_scores": {"fwd": 1}}', "fwd: an object by rank"),
    ],
)
def test_another_document_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_report(text)
