from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.failslow import FailSlowOptions, run
from simulator.failslow.suite import draw_falcon

DETECTORS = {"berth", "bocd_verified", "bocd", "sliding"}
SCORES = {"precision", "recall", "job_accuracy", "median_delay_iterations"}


def quiet(_: str) -> None:
    pass


@pytest.mark.parts
async def test_a_small_run_has_all_figures_and_a_page(tmp_path: Path) -> None:
    result = await run(FailSlowOptions(seeds=1, jobs=2, out=str(tmp_path)), quiet)
    by_jitter = result["by_jitter"]
    assert isinstance(by_jitter, dict) and set(by_jitter) == {"1", "2", "4", "8"}
    for name in DETECTORS:
        scores = result[name]
        assert isinstance(scores, dict) and set(scores) == SCORES
    assert json.loads((tmp_path / "failslow.json").read_text())["jobs"] == 2
    page = (tmp_path / "failslow.md").read_text()
    assert "| Berth |" in page
    assert "| break-even (FALCON) |" in page


@pytest.mark.parts
async def test_a_file_of_labelled_jobs_is_scored_by_the_same_code(tmp_path: Path) -> None:
    jobs = list(draw_falcon(1, range(4)))
    columns: dict[str, list[object]] = {
        name: [] for name in ("job", "iteration", "seconds", "label_start", "label_end")
    }
    for job in jobs:
        start, end = job.labels[0] if job.labels else (None, None)
        columns["job"] += [job.job] * len(job.seconds)
        columns["iteration"] += job.iteration.tolist()
        columns["seconds"] += job.seconds.tolist()
        columns["label_start"] += [start] * len(job.seconds)
        columns["label_end"] += [end] * len(job.seconds)
    path = tmp_path / "jobs.parquet"
    pq.write_table(pa.table(columns), path)
    result = await run(FailSlowOptions(suite=str(path)), quiet)
    assert result["jobs"] == len(jobs)
    assert result["berth"]["precision"] == result["berth"]["recall"] == 1  # type: ignore[index]


async def test_options_that_leave_nothing_to_compare_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="seeds: 0, must be at least 1"):
        await run(FailSlowOptions(seeds=0), quiet)
    with pytest.raises(ValueError, match="no such file"):
        await run(FailSlowOptions(suite=str(tmp_path / "none")), quiet)
