"""No job of a tenant runs as root, whatever the settings say."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.executor.core.engines.contract import Submit
from services.executor.core.slurm.submission import SlurmOptions
from services.executor.engines.slurm.commands import SlurmCommands
from services.executor.engines.slurm.slurm import SlurmEngine
from tests.services.executor.core.engines.looks import gang_of, placed_history


def engine(root: Path, user: str, uid: int) -> SlurmEngine:
    return SlurmEngine(
        SlurmCommands(root), root, "main", lambda tenant: SlurmOptions("main", user), uid
    )


@pytest.mark.parametrize(("user", "uid"), [("", 0), ("root", 0), ("root", 1000)])
async def test_a_gang_that_would_run_as_root_is_refused(
    tmp_path: Path, user: str, uid: int
) -> None:
    gang, serving = gang_of(placed_history()), engine(tmp_path, user, uid)
    failure = serving.refusal(gang)
    assert failure is not None and failure.reason == "user_missing" and failure.permanent
    assert failure.detail == (f"tenant {gang.launch.tenant}: no UNIX user; jobs do not run as root")
    assert await serving.act(Submit(gang)) == failure
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("user", "uid"), [("", 1000), ("daemon", 0)])
def test_another_user_is_not_refused(tmp_path: Path, user: str, uid: int) -> None:
    assert engine(tmp_path, user, uid).refusal(gang_of(placed_history())) is None


class Noting(SlurmCommands):
    """Notes what `sbatch` got, and the mode of the folder that it reads."""

    async def run(self, name: str, *arguments: str) -> str:
        self.arguments = arguments
        self.mode = Path(arguments[-1]).parent.stat().st_mode & 0o777
        return ""


async def test_sbatch_reads_no_file_that_a_tenant_can_change(tmp_path: Path) -> None:
    commands = Noting(None)
    serving = SlurmEngine(
        commands, tmp_path, "main", lambda tenant: SlurmOptions("main"), executor_uid=1000
    )
    assert await serving.act(Submit(gang_of(placed_history()))) is None
    *arguments, script = commands.arguments
    [nodes] = [text.partition("=")[2] for text in arguments if text.startswith("--nodelist=")]
    assert commands.mode == 0o700 and Path(nodes).parent == Path(script).parent
    assert Path(script).parents[1] != tmp_path and not Path(script).exists()
    assert not list(tmp_path.glob("*/job.sh"))
