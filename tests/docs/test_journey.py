"""The journey of a job names every file of services and contracts that a job passes through."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import pytest

from simulator.engine.run import simulate
from simulator.engine.scenario import POOL, Scenario, simulated_pool
from simulator.engine.sizing import equal_nodes, window_of
from simulator.workload.rows import WorkloadJob
from tests.docs.test_paths import CODE, TOP, TRACKED, expand, is_path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "journey.md").read_text()
FOLDERS = ("services/", "shared/")
TOPS = tuple(f"{top}/" for top in TOP)


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


def named_on_the_page() -> set[str]:
    """Return the files that the page names.

    A section names folders and files; a path in it is meant from the root, from such a folder, or
    from the folder of such a file.
    """
    return {
        path for section in re.split(r"^## ", PAGE, flags=re.MULTILINE) for path in named(section)
    }


def named(section: str) -> set[str]:
    paths = [path for code in CODE.findall(section) if is_path(code) for path in expand(code)]
    roots = {path.rstrip("/") for path in paths if path.startswith(TOPS)}
    folders = {root if (ROOT / root).is_dir() else root.rpartition("/")[0] for root in roots}
    return {*paths, *(f"{folder}/{path}" for folder in folders for path in paths)}


@pytest.mark.slow
def test_every_file_that_a_job_passes_through_is_named() -> None:
    called = called_by_jobs()
    assert {"services/admission/core/decide.py", "shared/ledger/folds.py"} < called
    assert sorted(called - named_on_the_page()) == []


def test_a_file_of_another_folder_is_not_named_by_its_name() -> None:
    section = "`services/admission/core/decide.py` folds into `state.py`, `pool/{board,queue}.py`"
    assert "services/admission/core/state.py" in named(section)
    assert "services/admission/core/pool/queue.py" in named(section)
    assert "services/priority/core/state.py" not in named(section)


NAME_IN_FILE = re.compile(r"`(?:\w+\.)?(\w+)` in\s+`([\w/.]+\.py)`")


@pytest.mark.parametrize("page", ["journey", "contributing", "fencing"])
def test_a_name_that_a_page_finds_in_a_file_is_there(page: str) -> None:
    for name, path in NAME_IN_FILE.findall((ROOT / "docs" / f"{page}.md").read_text()):
        files = [ROOT / tracked for tracked in TRACKED if f"/{tracked}".endswith(f"/{path}")]
        assert any(re.search(rf"\b{name}\b", file.read_text()) for file in files), (name, path)
