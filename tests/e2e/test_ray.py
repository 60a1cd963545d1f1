"""Jobs on the real Ray, on nodes with an agent, by the commands of the page."""

from __future__ import annotations

import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from berth_client.frameworks import launched
from infra.machine.environments import EnvironmentMissing, environment, python_of
from infra.supervisor.stack import AGENT as OWN_AGENT
from tests.e2e.agents.jobs import berth, output, submit
from tests.e2e.joined import JoinedNode, a_joined_node
from tests.e2e.page_blocks import blocks_of, lines, submit_block
from tests.e2e.stand import Stand, a_stand, eventually

RAY = blocks_of("frameworks.md")[2]
POOL = "gpu"
NODES = ("ray-1", "ray-2")
WITHIN_S = 300.0
DASHBOARD = r"0: Ray's dashboard is at (http://127\.\S+:\d+)"
HOLDS = """
import pathlib, signal, sys, time
import ray

def on_term(*_):
    pathlib.Path(sys.argv[1]).write_text(ray.get(task.remote()))
    sys.exit(7)

@ray.remote(num_gpus=2, num_cpus=0)
def task():
    return "ran"

ray.init()
signal.signal(signal.SIGTERM, on_term)
print("holds", flush=True)
time.sleep(3600)
"""
pytestmark = [pytest.mark.parts, pytest.mark.stack]


@pytest.fixture(scope="module")
def python() -> str:
    """The Python with Ray, in an environment of its own."""
    try:
        return str(python_of(environment("ray-2", ("ray[default]<3",))))
    except EnvironmentMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def stand(python: str) -> Iterator[Stand]:
    with a_stand(OWN_AGENT, "failslow", "throttle", tls=True) as stand:
        berth(stand, "pools", "add", POOL, "backends=agent")
        yield stand


@pytest.fixture(scope="module")
def nodes(stand: Stand) -> Iterator[dict[str, JoinedNode]]:
    """Two nodes of two GPUs each."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(a_joined_node(stand, POOL, name, gpus=2)) for name in NODES
        }


@pytest.fixture
def shared() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="berth-shared-") as name:
        yield Path(name)


def test_the_command_runs_once_on_a_cluster_of_all_workers(
    stand: Stand, nodes: dict[str, JoinedNode], shared: Path, python: str
) -> None:
    changes = {"/shared": str(shared), "-- python3": f"-- {python}"}
    job_id = submit_block(stand, RAY, changes)
    row = stand.ended(job_id, WITHIN_S)
    assert row["phase"] == "succeeded", "\n".join(output(stand, job_id))
    assert sorted(row["nodes"]) == sorted(nodes)
    eventually(lambda: lines(stand, job_id, r"0: tasks ran on (2) nodes of 2") == [("2",)])


def test_a_cancelled_command_saves_with_its_cluster(
    stand: Stand, nodes: dict[str, JoinedNode], shared: Path, python: str
) -> None:
    program, saved = shared / "holds.py", shared / "saved"
    program.write_text(HOLDS)
    gang = {"workers": 2, "gpus_per_worker": 2, "mem_gib_per_worker": 2}
    spec = launched(
        "ray",
        {
            "command": [python, str(program), str(saved)],
            "gang": gang,
            "env": {"GANG_KEY": "secret://gang"},
            "grace_s": 120,
        },
    )
    job_id = submit(stand, **spec)
    eventually(lambda: "0: holds" in output(stand, job_id), WITHIN_S)
    eventually(lambda: lines(stand, job_id, DASHBOARD), WITHIN_S)
    [(dashboard,)] = lines(stand, job_id, DASHBOARD)
    with urllib.request.urlopen(dashboard) as page:
        assert b"Ray" in page.read()
    berth(stand, "cancel", job_id)
    assert stand.ended(job_id, WITHIN_S)["phase"] == "cancelled"
    assert saved.read_text() == "ran"


def test_the_exit_code_of_the_command_is_that_of_the_job(
    stand: Stand, nodes: dict[str, JoinedNode], python: str
) -> None:
    spec = launched("ray", {"command": [python, "-c", "import ray; ray.init(); exit(9)"]})
    job_id = submit(stand, **spec)
    row = stand.ended(job_id, WITHIN_S)
    assert (row["phase"], row["exit_code"]) == ("failed", 9), output(stand, job_id)


def test_the_ledgers_are_sound(stand: Stand) -> None:
    assert stand.verify().violations == []
