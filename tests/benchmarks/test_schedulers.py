from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.parts.schedulers.page import render_page
from benchmarks.parts.schedulers.systems import allox, of_muri, of_pollux
from benchmarks.schedulers import SchedulersOptions, run
from simulator.rounds.artifacts import artifact_folder

RESULTS = Path(__file__).parents[2] / "docs" / "results"

needs_pollux = pytest.mark.skipif(
    artifact_folder("pollux") is None, reason="the inputs of Pollux' artifact are not here"
)


@needs_pollux
@pytest.mark.parametrize("name", ["tiresias", "optimus"])
def test_a_workload_takes_as_long_as_published(name: str) -> None:
    own = of_pollux(name, [6])
    assert own.within
    assert own.ours == pytest.approx(own.published, rel=0.02)


@pytest.mark.skipif(
    artifact_folder("muri") is None, reason="the inputs of Muri's artifact are not here"
)
@pytest.mark.parametrize("name", ["srsf", "tiresias_las", "muri", "muri_unknown"])
def test_jobs_that_share_gpus_take_as_long_as_published(name: str) -> None:
    own = of_muri(name, ["trace3"])
    assert own.within
    assert own.ours is not None
    assert own.published is not None
    assert abs(own.ours / own.published - 1.0) <= (0.05 if name.startswith("muri") else 0.0001)


def test_without_its_inputs_a_system_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_TRACES", "none/traces")
    own = [of_pollux("tiresias", [6]), allox([42]), of_muri("muri", ["trace3"])]
    assert [system.within for system in own] == [False, False, False]
    assert all("its inputs are not here" in system.anchor for system in own)


def test_the_page_is_that_of_the_result() -> None:
    result = json.loads((RESULTS / "schedulers.json").read_text())
    assert render_page(result) == (RESULTS / "schedulers.md").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (SchedulersOptions(searched="9"), "searched: 9, must be numbers of 1 to 8"),
        (SchedulersOptions(searched="a"), "searched: a, must be numbers of 1 to 8"),
        (SchedulersOptions(shared="trace9"), "shared: trace9, must be of trace1, trace2, trace3"),
        (SchedulersOptions(seeds=4), "seeds: 4, must be 1 to 3"),
        (SchedulersOptions(parts=0), "parts: 0, must be at least 1"),
        (SchedulersOptions(only="cpsat,sia"), "only: cpsat,sia, must be of systems, heterogeneity"),
    ],
)
async def test_options_that_leave_nothing_to_compare_are_refused(
    options: SchedulersOptions, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        await run(options, lambda _: None)


async def test_a_part_alone_leaves_the_others_of_the_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without the traces it is one that says so."""
    monkeypatch.setenv("BERTH_TRACES", "none/traces")
    before = json.loads((RESULTS / "schedulers.json").read_text())
    (tmp_path / "schedulers.json").write_text(json.dumps(before))
    result = await run(SchedulersOptions(only="cpsat", out=str(tmp_path)), lambda _: None)
    assert result["topology"] == before["topology"]
    assert "skipped" in str(result["cpsat"])
    page = (tmp_path / "schedulers.md").read_text()
    assert page == render_page(result)
    assert "## Topology" in page and "## Plans by CP-SAT\n\nNot run" in page
