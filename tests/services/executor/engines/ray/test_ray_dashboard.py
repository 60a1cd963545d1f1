"""The dashboard of a real Ray: it answers those alone who have its token, and stands still."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest

from infra.ray.cluster import RayCluster
from services.executor.engines.engine import EngineAway
from services.executor.engines.ray import worker
from services.executor.engines.ray.api import RayApi
from shared.contracts.reports import WorkerExited
from tests.real_clusters import ray_cluster
from tests.services.executor.conformance.ray_stage import OVER, RayStage

pytestmark = [pytest.mark.process, pytest.mark.long]
DASHBOARD = ("ray/dashboard/dashboard.py", "ray-dashboard-")
"""Words of the commands of the dashboard, which runs on the head, and of its parts."""
REQUEST = (
    "import sys, urllib.request as u, worker;"
    "u.urlopen(u.Request(sys.argv[1], headers=worker.token_header()))"
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster(token="5" * 64) as running:
        yield running


@pytest.fixture
async def stage(cluster: RayCluster, tmp_path: Path) -> AsyncIterator[RayStage]:
    made = RayStage(tmp_path, cluster)
    made.stop_after_s = 600.0
    await made.serving()
    yield made
    await made.clean()


async def test_executor_and_wrappers_have_the_token_of_the_dashboard(
    cluster: RayCluster, stage: RayStage
) -> None:
    stranger = RayApi(cluster.address)
    with pytest.raises(EngineAway, match="401"):
        await stranger.jobs()
    await stranger.close()
    await stage.begin("j1", stage.spec("exit 0"), ("g1", [0]))
    [end] = (await stage.exits(1)).values()
    assert end.exit_code == 0
    folder, address = str(Path(worker.__file__).parent), f"{cluster.address}/api/jobs/"
    command = shlex.join(["python3", "-c", REQUEST, address])
    entrypoint = f"cd {shlex.quote(folder)} && {command}"
    body = {"submission_id": "like-a-wrapper", "entrypoint": entrypoint}
    # The head has no cores: a node runs it.
    assert cluster.request("POST", "/api/jobs/", {**body, "entrypoint_num_cpus": 1})
    await stage.until(lambda: status_of(cluster, "like-a-wrapper") in OVER)
    assert status_of(cluster, "like-a-wrapper") == "SUCCEEDED"


def status_of(cluster: RayCluster, job: str) -> str:
    return str((cluster.request("GET", f"/api/jobs/{job}") or {}).get("status"))


async def test_a_dashboard_that_stands_still_ends_no_job_and_is_shown(
    cluster: RayCluster, stage: RayStage
) -> None:
    assert stage.executor is not None
    await stage.begin("j1", stage.spec("echo begun; sleep 300"), ("g1", [0]))
    await stage.until(lambda: stage.printed() == ["begun"])
    cluster.signal("head", SIGSTOP, DASHBOARD)
    try:
        health = stage.executor.health
        await stage.until(lambda: "ray is away: GET" in str(health().get("reason")))
        assert stage.reports(WorkerExited) == []
    finally:
        cluster.signal("head", SIGCONT, DASHBOARD)
    await stage.until(lambda: health() == {"ready": True})
    stage.request_stop("j1")
    [stopped] = await stage.stops(1)
    assert stopped.exit_code == 143 and stage.printed() == ["begun"]
