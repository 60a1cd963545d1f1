"""Faults of a real Slurm: of its credentials, its memory, its answers and its nodes."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from signal import SIGKILL

import pytest

from infra.slurm.cluster import GPUS, NODES, SlurmCluster
from services.executor.engines.server import EngineServer
from services.executor.engines.slurm.commands import SlurmCommands
from services.executor.engines.slurm.slurm import SlurmEngine
from services.executor.settings import ExecutorSettings
from shared.contracts.reports import WorkerExited, WorkerReady
from tests.real_clusters import slurm_cluster
from tests.services.executor.conformance.stages import SlurmStage
from tests.services.executor.facts import started

pytestmark = [pytest.mark.process, pytest.mark.parts]
TWICE = '#!/bin/sh\n{sbatch} "$@" > /dev/null\nexec {sbatch} "$@"\n'
"""A submission that is carried out twice, as one that is repeated after a lost answer."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    with slurm_cluster() as running:
        yield running


class OwnCommands(SlurmStage):
    """Berth has commands of its own; the test has Slurm's."""

    commands: Path | None = None

    def make(self, settings: ExecutorSettings) -> EngineServer:
        engine = SlurmEngine(
            SlurmCommands(self.commands),
            self.shared,
            "main",
            lambda tenant: self.options,
            os.geteuid(),
            ("daemon",),
        )
        return EngineServer(settings, self.name, engine, self.connect, self.metrics)


@pytest.fixture
async def stage(
    tmp_path: Path, cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[OwnCommands]:
    monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
    made = OwnCommands(tmp_path, cluster)
    yield made
    await made.clean()


async def test_without_credentials_nothing_is_concluded_and_workers_go_on(
    stage: OwnCommands, cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.executor.engines.pool.AWAY_AFTER_S", 0.5)
    await stage.serving()
    place = await stage.begin("j1", stage.spec("echo ran; sleep 3; echo over"), ("g1", [0]))
    await stage.until(lambda: stage.printed() == ["ran"])
    cluster.signal("munged", SIGKILL)
    try:
        health = stage.executor.health  # type: ignore[union-attr]
        await stage.until(lambda: "slurm is away" in str(health()))
        assert stage.reports(WorkerExited) == []
    finally:
        cluster.start_authentication()
    [end] = (await stage.exits(1)).values()
    assert (end.exit_code, stage.runs_of(place)) == (0, 1)


async def test_a_controller_that_forgot_the_last_job_gets_it_again(
    stage: OwnCommands, cluster: SlurmCluster, tmp_path: Path
) -> None:
    """Its next job has the same number: the gang is known by its name."""
    await stage.serving()
    before = tmp_path / "before"
    shutil.copytree(cluster.folder / "state", before)
    place = stage.place("j1", stage.spec("echo ran"), ("g1", [0]))
    await stage.until(lambda: bool(stage.refs()))
    cluster.forget(before)
    [ready, *_] = await stage.wait_for(WorkerReady)
    await stage.until(lambda: bool(stage.refs()))
    stage.write(started("j1").model_copy(update={"master_port": ready.master_port}))
    [end] = (await stage.exits(1)).values()
    assert (end.exit_code, stage.runs_of(place)) == (0, 1)


async def test_a_submission_that_slurm_carries_out_twice_runs_once(
    stage: OwnCommands, tmp_path: Path
) -> None:
    stage.commands = tmp_path / "commands"
    stage.commands.mkdir()
    for name in ("sinfo", "squeue", "scancel", "scontrol", "sbatch", "srun"):
        (stage.commands / name).symlink_to(str(shutil.which(name)))
    sbatch = stage.commands / "sbatch"
    text = TWICE.format(sbatch=sbatch.readlink())
    sbatch.unlink()
    sbatch.write_text(text)
    sbatch.chmod(0o755)
    await stage.serving()
    place = await stage.begin("j1", stage.spec("echo ran; sleep 1"), ("g1", [0]))
    await stage.exits(1)
    await stage.until(lambda: stage.refs() == [])
    await asyncio.sleep(0.5)
    assert stage.runs_of(place) == 1


async def test_a_user_that_changes_its_job_has_its_gpus_not_released_while_it_runs(
    stage: OwnCommands, cluster: SlurmCluster
) -> None:
    await stage.serving()
    place = await stage.begin("j1", stage.spec("echo begun; sleep 300"), ("g1", [0]))
    await stage.until(lambda: stage.printed() == ["begun"])
    [ref] = stage.refs()
    cluster.run("scontrol", "update", f"jobid={ref}", "comment=mine", "name=mine")
    cluster.run("scontrol", "update", f"jobid={ref}", "workdir=/tmp")
    await stage.until(lambda: stage.refs() == [])
    await asyncio.sleep(0.5)
    assert stage.reports(WorkerExited) == []
    stage.request_stop("j1")
    [stopped] = await stage.stops(1)
    assert stopped.allocation_id.startswith(place)
    assert cluster.run("squeue", "-h", "-j", ref, "-t", "running", "-o", "%i") == ""


async def test_a_node_with_fewer_gpus_than_it_says_gets_no_new_work(
    stage: OwnCommands, cluster: SlurmCluster
) -> None:
    await stage.serving()
    cluster.write_gpus({**dict.fromkeys(NODES, GPUS), "g3": GPUS - 1})
    cluster.signal("g3", SIGKILL)
    cluster.start_node("g3")
    try:
        await stage.until(lambda: bool(stage.problems()))
        [problem, *_] = stage.problems()
        assert (problem.node_id, problem.problem) == ("g3", "engine_drained")
        assert "count reported lower than configured" in problem.detail
    finally:
        cluster.write_gpus(dict.fromkeys(NODES, GPUS))
        cluster.signal("g3", SIGKILL)
        cluster.start_node("g3")
        stage.resume("g3")
