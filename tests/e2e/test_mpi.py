"""A job on the real Open MPI, on nodes with an agent, by the commands of the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from berth_agent.core.environment import DEFAULT_PATH
from infra.supervisor.stack import AGENT as OWN_AGENT
from tests.e2e.agents.jobs import berth, output
from tests.e2e.joined import JoinedNode, a_joined_node
from tests.e2e.page_blocks import blocks_of, lines, submit_block
from tests.e2e.stand import Stand, a_stand, eventually
from tests.e2e.test_training import USER

MPI = blocks_of("frameworks.md")[3]
POOL = "gpu"
NODES = ("mpi-1", "mpi-2")
pytestmark = [
    pytest.mark.parts,
    pytest.mark.stack,
    pytest.mark.skipif(
        not all(shutil.which(name, path=DEFAULT_PATH) for name in ("mpirun", "python3")),
        reason="workers find no mpirun or no python3",
    ),
]


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with a_stand(OWN_AGENT, "failslow", "throttle", tls=True) as stand:
        berth(stand, "pools", "add", POOL, "backends=agent")
        yield stand


@pytest.fixture(scope="module")
def nodes(stand: Stand) -> Iterator[dict[str, JoinedNode]]:
    """Two nodes of two GPUs each."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(a_joined_node(stand, POOL, name, gpus=2, **USER))
            for name in NODES
        }


def test_each_gpu_of_the_gang_has_a_process(stand: Stand, nodes: dict[str, JoinedNode]) -> None:
    job_id = submit_block(stand, MPI, {})
    row = stand.ended(job_id)
    assert row["phase"] == "succeeded", "\n".join(output(stand, job_id))
    assert sorted(row["nodes"]) == sorted(nodes)
    line = r"0: process (\d) of 4 in worker (\d)"
    placed = [("0", "0"), ("1", "0"), ("2", "1"), ("3", "1")]
    eventually(lambda: sorted(lines(stand, job_id, line)) == placed)


def test_the_ledgers_are_sound(stand: Stand) -> None:
    assert stand.verify().violations == []
