"""The page on Slurm is run as it stands, and behind it the one on mixed pools, on a real Slurm."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.slurm.cluster import HOOK, HOOKS, SlurmCluster
from tests.docs.engine_pages import assert_names_settings_and_reasons, run_page
from tests.pages import ROOT, blocks
from tests.real_clusters import slurm_cluster

PAGE = (ROOT / "docs" / "slurm.md").read_text()
MIXED = (ROOT / "docs" / "mixed-pools.md").read_text()
FOLDER = "/shared/berth"


@pytest.fixture
def cluster() -> Iterator[SlurmCluster]:
    with slurm_cluster() as running:
        yield running


def test_the_page_names_every_setting_and_reason() -> None:
    assert_names_settings_and_reasons(PAGE, "slurm")


def test_the_page_installs_the_script_as_the_cluster_of_the_tests_does() -> None:
    installed = f"/etc/slurm/berth/{HOOK.name}"
    assert HOOKS.format(script=installed) in PAGE
    assert f"{HOOK.relative_to(ROOT)} {installed}" in PAGE


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
    text = "\n".join(blocks(PAGE + MIXED)).replace(FOLDER, str(cluster.shared))
    output = run_page(text, environment, cluster.folder)
    ended = cluster.run("squeue", "-h", "--states=all", "-o", "%k %T").splitlines()
    assert re.search(r"rank 0 of 2 on GPUs \d,\d", output), output
    assert re.search(r"rank 1 of 2 on GPUs \d,\d", output)
    assert "g1" in output and "cancelled" in output
    assert "first known as" in output and "to pool local" in output, output
    ours = [line for line in ended if line.startswith("berth:")]
    assert len(ours) == 2, "one job of Slurm for each of Berth, as its comment says"
