"""A real Slurm whose Prolog, Epilog and job completion note begin and end for the executor."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from infra.slurm.cluster import SlurmCluster
from services.executor.core.engines.noted import folder_name
from services.executor.core.slurm.hooks import BEGUN, CLEARED, ENDED
from services.executor.engines.server import EngineServer
from services.executor.engines.slurm.commands import SlurmCommands
from services.executor.engines.slurm.slurm import SlurmEngine
from services.executor.settings import ExecutorSettings
from shared.contracts.reports import WorkerExited
from tests.patience import until
from tests.real_clusters import slurm_cluster
from tests.services.executor.conformance.stages import SlurmStage

pytestmark = [pytest.mark.process, pytest.mark.parts]
GATE = (
    'while [ "$SLURM_SCRIPT_CONTEXT" = epilog_slurmd ] && [ -e {gate} ]; do sleep 0.05; done\n'
    '[ "$SLURM_SCRIPT_CONTEXT" = epilog_slurmd ] && touch {gate}.passed\n:\n'
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    with slurm_cluster(has_hooks=True) as running:
        yield running


class NotedStage(SlurmStage):
    """Its executor reads the notes of Slurm's scripts."""

    def make(self, settings: ExecutorSettings) -> EngineServer:
        engine = SlurmEngine(
            SlurmCommands(None),
            self.shared,
            "main",
            lambda tenant: self.options,
            os.geteuid(),
            ("daemon",),
            self.cluster.hooks,
        )
        return EngineServer(settings, self.name, engine, self.connect, self.metrics)

    def noted(self, place: str) -> list[str]:
        """Return the kinds of notes of a gang."""
        [folder] = self.cluster.hooks.glob(f"*+{self.name}+{folder_name(place)}")
        return sorted(path.name.partition(".")[0] for path in folder.iterdir())


@pytest.fixture
async def stage(
    tmp_path: Path, cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[NotedStage]:
    monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
    made = NotedStage(tmp_path, cluster)
    yield made
    await made.clean()


async def test_the_gpus_of_a_node_that_came_back_are_free_once_its_epilog_has_run(
    stage: NotedStage, cluster: SlurmCluster, tmp_path: Path
) -> None:
    gate, configuration = tmp_path / "gate", cluster.folder / "etc" / "berth-hook.conf"
    installed = configuration.read_text()
    await stage.serving()
    place = await stage.begin("j1", stage.spec("echo begun; sleep 300"), ("g1", [0]))
    await stage.until(lambda: stage.printed() == ["begun"])
    assert stage.noted(place) == [BEGUN]
    gate.touch()
    configuration.write_text(installed + GATE.format(gate=gate))
    try:
        stage.freeze("g1")
        await stage.give_up("g1")
        stage.thaw("g1")
        stage.resume("g1")
        node = "sinfo", "-h", "-n", "g1", "-o", "%t"
        await stage.until(lambda: cluster.run(*node).strip() == "idle")
        await asyncio.sleep(1.0)
        assert stage.reports(WorkerExited) == [], "Slurm has its GPUs free, and its epilog runs"
        gate.unlink()
        [end, *_] = await stage.wait_for(WorkerExited)
    finally:
        gate.unlink(missing_ok=True)
        configuration.write_text(installed)
    assert end.reason == "step_lost" and CLEARED in stage.noted(place)


async def test_a_job_that_ended_and_was_forgotten_while_the_executor_was_away_has_its_reason(
    stage: NotedStage, cluster: SlurmCluster, tmp_path: Path
) -> None:
    before = tmp_path / "before"
    await stage.serving()
    shutil.copytree(cluster.folder / "state", before)
    place = await stage.begin("j1", stage.spec("echo begun; sleep 300"), ("g1", [0]), ("g2", [0]))
    await stage.until(lambda: stage.printed(0) == stage.printed(1) == ["begun"])
    await stage.crash()
    [ref] = stage.refs()
    cluster.run("scancel", ref)
    whole = [BEGUN, BEGUN, CLEARED, CLEARED, ENDED]
    await until(lambda: stage.noted(place) == whole)
    cluster.forget(before)
    stage.start()
    [end, *_] = (await stage.exits(2)).values()
    assert end.reason == "engine_cancelled"
    assert end.detail == f"it was cancelled in Slurm: Slurm job {ref}"
