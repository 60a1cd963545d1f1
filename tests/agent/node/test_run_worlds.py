"""Jobs of one node are kept apart: folders, users and what a node says of them."""

from __future__ import annotations

import os
from typing import Any

import pytest

from berth_agent.node.config import Config
from berth_agent.node.machine import probe_kernel
from tests.agent.executor_double import ExecutorDouble
from tests.agent.node_bench import W, a_node, line, run

pytestmark = pytest.mark.process

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives workers a user")
mounting = pytest.mark.skipif(not probe_kernel(Config()).mounts, reason="no mount namespaces here")
OTHER = "0/6/0/0"


def gang(rank: int) -> dict[str, Any]:
    return {"rank": rank, "local_rank": rank, "world_size": 2, "local_world_size": 2}


@mounting
def test_a_job_sees_nothing_that_others_left_and_its_workers_share_folders(
    double: ExecutorDouble,
) -> None:
    with a_node(double, private_tmp=True) as node:
        assert double.wait_for("registration").labels["berth.tmp"] == "job"
        leave = "for f in /tmp /var/tmp /dev/shm; do echo weights > $f/left; done"
        run(double, f"{leave}; ls -d $PWD ${{BERTH_TELEMETRY%/*}}; exec sleep 600", **gang(0))
        line(node, "telemetry")
        read = "cat /tmp/left /var/tmp/left /dev/shm/left"
        run(double, read, "0/5/0/1", **gang(1))
        assert double.wait_for("exited", "0/5/0/1").exit_code == 0
        assert node.output("0/5/0/1") == "weights\n" * 3
        run(double, read, OTHER, job_id="j2")
        assert double.wait_for("exited", OTHER).exit_code == 1
        assert node.output(OTHER).count("No such file or directory") == 3


def test_a_node_without_folders_of_jobs_says_so(double: ExecutorDouble) -> None:
    with a_node(double, private_tmp=False) as node:
        assert double.wait_for("registration").labels["berth.tmp"] == "shared"
        run(double, f"ls -d {node.state}")
        assert double.wait_for("exited", W).exit_code == 0
