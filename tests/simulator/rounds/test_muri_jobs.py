from __future__ import annotations

import pytest

from shared.schedulers.registry import scheduler_of
from simulator.rounds.artifacts import artifact_folder
from simulator.rounds.muri_jobs import SHARING, muri_jobs, muri_nodes, muri_options
from simulator.rounds.world import RoundsWorld

FOLDER = artifact_folder("muri")

pytestmark = pytest.mark.skipif(FOLDER is None, reason="the inputs of Muri's artifact are not here")


def test_times_are_seconds_and_each_job_has_its_stages() -> None:
    assert FOLDER is not None
    first = muri_jobs(FOLDER / "simulator", "trace3")[0]
    assert (first.gpus, first.submit_s, first.restart_s) == (4, 0.0, 5.0)
    assert first.stages is not None
    assert first.stages.iteration_s == pytest.approx(0.886 * 1.015)
    assert [own.seconds for own in first.stages.stages] == [0.703, 0.062, 0.017]
    assert first.stages.slots == 4
    assert SHARING.most_jobs == 4


@pytest.mark.parametrize(
    ("name", "mean_jct_s", "makespan_s"),
    [("srsf", 185_021.88, 8_174_135.28), ("tiresias_las", 347_213.25, 8_174_226.28)],
)
def test_without_sharing_a_trace_takes_as_long_as_published(
    name: str, mean_jct_s: float, makespan_s: float
) -> None:
    assert FOLDER is not None
    jobs = muri_jobs(FOLDER / "simulator", "trace3")
    outcome = RoundsWorld(jobs, muri_nodes(), scheduler_of(name), muri_options()).run()
    assert outcome.mean_jct_s() == pytest.approx(mean_jct_s, abs=1.0)
    assert outcome.makespan_s == pytest.approx(makespan_s, abs=1.0)
