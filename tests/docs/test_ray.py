"""The page on Ray is run as it stands, on a real Ray."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.ray.cluster import RayCluster
from tests.docs.engine_pages import assert_names_settings_and_reasons, run_page
from tests.pages import ROOT, blocks
from tests.real_clusters import ray_cluster

PAGE = (ROOT / "docs" / "ray.md").read_text()
FOLDER, ADDRESS = "/shared/berth", "http://ray-head:8265"


@pytest.fixture
def cluster() -> Iterator[RayCluster]:
    with ray_cluster() as running:
        yield running


def test_the_page_names_every_setting_and_reason() -> None:
    assert_names_settings_and_reasons(PAGE, "ray")


@pytest.mark.stack
@pytest.mark.long
def test_the_page_does_what_it_says(cluster: RayCluster) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "BERTH_HOME": str(cluster.folder / "home"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        # A worker of Ray takes seconds to start on a machine with few cores.
        "BERTH_RAY_PENDING_S": "120",
    }
    text = "\n".join(blocks(PAGE)).replace(FOLDER, str(cluster.shared))
    output = run_page(text.replace(ADDRESS, cluster.address), environment, cluster.folder)
    assert re.search(r"rank 0 of 2 on GPUs \d,\d", output), output
    assert re.search(r"rank 1 of 2 on GPUs \d,\d", output)
    assert "g1" in output and "cancelled" in output
    # Ray's own jobs are deleted a while after their end: what they left in the folder stays.
    gangs = cluster.shared.glob("berth~*")
    begun = sorted(len(list(gang.glob("rank-*.begun"))) for gang in gangs)
    assert begun in ([0, 2], [1, 2]), "a gang of two, and the job that was cancelled"
