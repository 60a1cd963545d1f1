"""The page on Slurm is run as it stands, and behind it the one on mixed pools, on a real Slurm."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.executor.settings import ExecutorSettings
from shared.contracts.failures import ADVICE
from tests.patience import PATIENCE_S
from tests.slurm_cluster import SlurmCluster, missing, slurm_cluster

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "slurm.md").read_text()
MIXED = (ROOT / "docs" / "mixed-pools.md").read_text()
FOLDER = "/shared/berth"


def script() -> str:
    return "\n".join(re.findall(r"^```sh\n(.*?)^```$", PAGE + MIXED, re.DOTALL | re.MULTILINE))


@pytest.fixture
def cluster() -> Iterator[SlurmCluster]:
    if reason := missing():
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="bs", dir="/tmp") as folder,
        slurm_cluster(Path(folder)) as running,
    ):
        yield running


def test_the_page_names_every_setting() -> None:
    settings = {name for name in ExecutorSettings.model_fields if name.startswith("slurm_")}
    named = set(re.findall(r"`BERTH_(SLURM_\w+)`", PAGE.partition("| variable |")[2]))
    assert {name.lower() for name in named} == settings


def test_the_page_has_every_reason_of_an_engine() -> None:
    named = set(re.findall(r"^\| `(engine_\w+)` \|", PAGE, re.MULTILINE))
    assert named == {reason for reason in ADVICE if reason.startswith("engine_")}


@pytest.mark.stack
@pytest.mark.parts
def test_the_page_does_what_it_says(cluster: SlurmCluster) -> None:
    home = cluster.folder / "home"
    environment = {
        **cluster.environment,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "BERTH_HOME": str(home),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    if os.geteuid() == 0:
        environment["BERTH_SLURM_USER"] = "daemon"
    text = script().replace(FOLDER, str(cluster.shared))
    try:
        done = run(["bash", "-eu", "-o", "pipefail", "-c", text], environment, cluster.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        ended = cluster.run("squeue", "-h", "--states=all", "-o", "%k %T").splitlines()
    finally:
        run(["berth", "down"], environment, cluster.folder)
    assert re.search(r"rank 0 of 2 on GPUs \d,\d", done.stdout), done.stdout
    assert re.search(r"rank 1 of 2 on GPUs \d,\d", done.stdout)
    assert "g1" in done.stdout and "cancelled" in done.stdout
    assert "first known as" in done.stdout and "to pool local" in done.stdout, done.stdout
    ours = [line for line in ended if line.startswith("berth:")]
    assert len(ours) == 2, "one job of Slurm for each of Berth, as its comment says"


def run(
    command: list[str], environment: dict[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
