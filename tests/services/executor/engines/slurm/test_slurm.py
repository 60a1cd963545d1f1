"""Users of Slurm's jobs, and its refusals without the name of its command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.executor.core.slurm.submission import SlurmOptions
from services.executor.engines.engine import EngineAway, OutputUnreadable
from services.executor.engines.slurm.commands import SlurmCommands
from services.executor.engines.slurm.folder import GangFolder
from services.executor.engines.slurm.slurm import SlurmEngine, refusal_words
from shared.contracts.reports import WorkerRefused
from tests.real_clusters import slurm_cluster
from tests.services.executor.conformance.stages import SlurmStage
from tests.services.executor.core.engines.looks import IDENTITY


def test_a_refusal_has_slurms_own_words_once() -> None:
    text = (
        "sbatch: error: CPU count per node can not be satisfied\n"
        "sbatch: error: Batch job submission failed: Requested node configuration is not available"
    )
    assert refusal_words(text) == (
        "Slurm: CPU count per node can not be satisfied; "
        "Batch job submission failed: Requested node configuration is not available"
    )


async def test_output_that_may_not_be_read_is_no_empty_output(tmp_path: Path) -> None:
    options = SlurmOptions("main", "")
    engine = SlurmEngine(SlurmCommands(None), tmp_path, "main", lambda tenant: options, 0)
    assert await engine.read_output(IDENTITY, 0, 0) == b"", "there is none yet"
    GangFolder(tmp_path, IDENTITY).path.touch()
    with pytest.raises(OutputUnreadable, match="Not a directory"):
        await engine.read_output(IDENTITY, 0, 0)


class Empty(SlurmCommands):
    """A Slurm without nodes and jobs."""

    async def read_json(self, name: str, *arguments: str) -> dict[str, Any]:
        return {}


async def test_a_folder_that_all_may_write_is_not_served(tmp_path: Path) -> None:
    options = SlurmOptions("main", "")
    engine = SlurmEngine(Empty(None), tmp_path / "shared", "main", lambda tenant: options, 0)
    assert (await engine.observe([IDENTITY])).jobs == (), "the first gang makes it"
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    with pytest.raises(EngineAway, match="others than its owner may write there"):
        await engine.observe([IDENTITY])
    (tmp_path / "shared").chmod(0o775)
    await engine.observe([IDENTITY])


@pytest.mark.process
@pytest.mark.parts
async def test_a_job_runs_as_the_user_of_its_tenant_and_an_unknown_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with slurm_cluster() as cluster:
        monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
        stage = SlurmStage(tmp_path, cluster)
        stage.options = SlurmOptions("main", "daemon", "vision")
        await stage.serving()
        await stage.begin("j1", stage.spec("id -un; pwd > /dev/null"), ("g1", [0]))
        await stage.exits(1)
        await stage.until(lambda: stage.printed() == ["daemon"])
        assert cluster.run("squeue", "-h", "--states=all", "-o", "%a").split() == ["vision"]
        stage.options = SlurmOptions("main", "no-such-user")
        stage.place("j2", stage.spec("true"), ("g2", [0]))
        [refused] = await stage.wait_for(WorkerRefused)
        assert refused.reason == "user_missing" and "no-such-user" in refused.detail
        await stage.clean()
