"""The journey of a job names every file of services and contracts that a job passes through."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest

from simulator.engine.run import simulate
from simulator.engine.scenario import POOL, Scenario, simulated_pool
from simulator.engine.sizing import equal_nodes, window_of
from simulator.workload.rows import WorkloadJob

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "journey.md").read_text()
FOLDERS = ("services/", "shared/")


def gang(number: int) -> WorkloadJob:
    """Two workers of four GPUs: of three such jobs one waits."""
    return WorkloadJob(f"k{number}", "t", "u", "n", number, 50.0, 2, 4.0, None, 1, 1, None)


def called_by_jobs() -> set[str]:
    """Return the files below `FOLDERS` of which a function is called while jobs are simulated."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    jobs = [gang(number) for number in range(3)]
    pool = simulated_pool(base_policy="gittins")
    scenario = Scenario(
        jobs=jobs, nodes=equal_nodes(2, pool=POOL), pool=pool, window_s=window_of(jobs)
    )
    sys.setprofile(note)
    try:
        simulate(scenario)
    finally:
        sys.setprofile(None)
    paths = (file.removeprefix(f"{ROOT}/") for file in files)
    return {path for path in paths if path.startswith(FOLDERS)}


def named_on_the_page() -> Counter[str]:
    """Count the mentions of each name of a file; `fold_{queue,nodes}.py` are two."""
    names = Counter(re.findall(r"\w+\.py", PAGE))
    for head, parts in re.findall(r"(\w+)\{([\w,]+)\}\.py", PAGE):
        names.update(f"{head}{part}.py" for part in parts.split(","))
    return names


@pytest.mark.slow
def test_every_file_that_a_job_passes_through_is_named() -> None:
    called = called_by_jobs()
    assert {"services/admission/core/decide.py", "shared/ledger/folds.py"} < called
    passed = Counter(Path(path).name for path in called)
    unnamed = passed - named_on_the_page()
    assert sorted(path for path in called if Path(path).name in unnamed) == []
