"""Trainings with PyTorch DDP and launchers on nodes with an agent, by the commands of the pages."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from berth_agent.core.environment import DEFAULT_PATH
from infra.supervisor.stack import AGENT as OWN_AGENT
from tests.e2e.agents.jobs import berth
from tests.e2e.joined import JoinedNode, a_joined_node
from tests.e2e.page_blocks import blocks_of, lines, run_block, submit_block
from tests.e2e.stand import Json, Stand, a_stand, eventually
from tests.pages import ROOT

RUN, DRAIN, URGENT = blocks_of("operations/training.md")
TORCHRUN, JAX, _, MPI = blocks_of("frameworks.md")[:4]
LOOPBACK = "--env GLOO_SOCKET_IFNAME=lo"
PYTHON = shutil.which("python3", path=DEFAULT_PATH)
NODES = ("train-1", "train-2", "train-3")
POOL = "gpu"
WITHIN_S = 300.0
ROUNDING = 1e-6
"""The first iteration of a life reduces its gradients in another order than later ones."""
OLD_TORCHRUN = {
    "--framework torchrun": "--framework torchrun --env PET_REDIRECTS=9:1 --env PET_TEE=9:1"
}
"""PyTorch 1.13 cannot read its own default of these options with Python 3.11."""
JAX_STAND_IN = """
import os

class distributed:
    def initialize(address, processes, process, *, local_device_ids):
        assert address == f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        globals().update(
            process_count=lambda: processes,
            process_index=lambda: process,
            local_device_count=lambda: len(local_device_ids),
            device_count=lambda: len(local_device_ids) * processes,
        )
"""
"""JAX is large, and comes with no python3 of a distribution: this has what the page calls."""
USER = {"uid_first": 70_000} if os.geteuid() == 0 else {}


def missing() -> str:
    """Return why the python3 of workers cannot train, empty if it can."""
    if PYTHON is None:
        return "workers find no python3"
    code = "import torch.distributed as d; raise SystemExit(not d.is_gloo_available())"
    done = subprocess.run([PYTHON, "-c", code], capture_output=True, check=False)
    return "" if done.returncode == 0 else f"{PYTHON} has no PyTorch with gloo"


pytestmark = [pytest.mark.parts, pytest.mark.stack]


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    if reason := missing():
        pytest.skip(reason)
    with a_stand(OWN_AGENT, "failslow", "throttle", tls=True) as stand:
        berth(stand, "pools", "add", POOL, "backends=agent")
        yield stand


@pytest.fixture(scope="module")
def nodes(stand: Stand) -> Iterator[dict[str, JoinedNode]]:
    """Two nodes of two GPUs each."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(a_node(stand, name)) for name in NODES[:2]}


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that tenants may write to, with the example."""
    with tempfile.TemporaryDirectory(prefix="berth-shared-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "ddp.py").write_bytes((ROOT / "docs" / "examples" / "ddp.py").read_bytes())
        yield folder


def a_node(stand: Stand, name: str) -> Any:
    return a_joined_node(stand, POOL, name, gpus=2, **USER)


def submit(stand: Stand, block: str, shared: Path, **changes: str) -> str:
    """Submit the job of a block; all nodes are on this machine."""
    here = {"/shared": str(shared), "berth submit --json": f"berth submit --json {LOOPBACK}"}
    return submit_block(stand, block, here | changes)


def ended(stand: Stand, job_id: str) -> Json:
    row = stand.ended(job_id, WITHIN_S)
    assert row["phase"] == "succeeded", berth(stand, "why", job_id)
    return row


def weights(stand: Stand, job_id: str, step: int) -> float:
    """Return the sum of the weights with which each of the four ranks ended."""
    pattern = rf"rank (\d) ends at step {step}, weights (\d+\.\d{{6}})"
    eventually(lambda: len(lines(stand, job_id, pattern)) == 4)
    matched: dict[str, str] = {line[0]: line[1] for line in lines(stand, job_id, pattern)}
    assert set(matched) == set("0123")
    [same] = set(matched.values())
    return float(same)


def undisturbed(stand: Stand, shared: Path, steps: int) -> float:
    """Return the weights of a training of so many steps that nothing stops."""
    job_id = submit(stand, RUN, shared, **{"run-17": "again", "1000000": str(steps)})
    assert ended(stand, job_id)["attempt"] == 1
    return weights(stand, job_id, steps)


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.stem.removeprefix("step-"))


def test_a_training_is_moved_by_a_drain_and_ends_as_if_nothing_had_happened(
    stand: Stand, nodes: dict[str, JoinedNode], shared: Path
) -> None:
    run = shared / "run-17"
    job_id = submit(stand, RUN, shared)
    eventually(lambda: len(list(run.glob("attempt-000001/*.pt"))) >= 2, WITHIN_S)
    row = stand.job(job_id)
    assert row is not None and sorted(row["nodes"]) == sorted(nodes)
    with a_node(stand, NODES[2]):
        run_block(stand, DRAIN, {"$NODE": "train-2"})
        eventually(lambda: len(list(run.glob("attempt-000002/*.pt"))) >= 2, WITHIN_S)
        first = max(run.glob("attempt-000001/*.pt"))
        (run / "finish").touch()
        row = ended(stand, job_id)
        assert sorted(row["nodes"]) == ["train-1", "train-3"]
        assert row["attempt"] == 2
        last = step_of(max(run.glob("attempt-000002/*.pt")))
        moved = weights(stand, job_id, last)
        begun = lines(stand, job_id, r"rank \d of 4 begins at step (\d+)")
        assert {int(step) for (step,) in begun} == {0, step_of(first)}
        assert undisturbed(stand, shared, last) == pytest.approx(moved, rel=ROUNDING)
        # Its agent ends here, and nothing may be placed on it until its lease is over.
        berth(stand, "cordon", NODES[2])
    berth(stand, "uncordon", "train-2")


def test_a_training_is_preempted_by_a_higher_class_and_ends_as_if_nothing_had_happened(
    stand: Stand, nodes: dict[str, JoinedNode], shared: Path
) -> None:
    run = shared / "run-17"
    job_id = submit(stand, RUN, shared)
    eventually(lambda: len(list(run.glob("attempt-000001/*.pt"))) >= 2, WITHIN_S)
    urgent = submit(stand, URGENT, shared)
    assert ended(stand, urgent)["attempt"] == 1
    eventually(lambda: len(list(run.glob("attempt-000002/*.pt"))) >= 2, WITHIN_S)
    saved = max(run.glob("attempt-000001/*.pt"))
    (run / "finish").touch()
    row = ended(stand, job_id)
    assert (row["attempt"], row["preemptions"]) == (2, 1)
    assert urgent in berth(stand, "why", job_id)
    begun = lines(stand, job_id, r"rank \d of 4 begins at step (\d+)")
    assert {int(step) for (step,) in begun} == {0, step_of(saved)}
    last = step_of(max(run.glob("attempt-000002/*.pt")))
    resumed = weights(stand, job_id, last)
    assert undisturbed(stand, shared, last) == pytest.approx(resumed, rel=ROUNDING)


def test_a_cancelled_training_goes_on_from_its_checkpoint_when_it_is_submitted_again(
    stand: Stand, nodes: dict[str, JoinedNode], shared: Path
) -> None:
    run = shared / "run-17"
    first = submit(stand, RUN, shared)
    eventually(lambda: len(list(run.glob("attempt-000001/*.pt"))) >= 2, WITHIN_S)
    berth(stand, "cancel", first)
    assert stand.ended(first, WITHIN_S)["phase"] == "cancelled"
    saved = step_of(max(run.glob("attempt-000001/*.pt")))
    (run / "finish").touch()
    second = submit(stand, RUN, shared)
    ended(stand, second)
    begun = lines(stand, second, r"rank \d of 4 begins at step (\d+)")
    assert {int(step) for (step,) in begun} == {saved}
    weights(stand, second, saved + 1)


def test_torchrun_starts_a_process_for_each_gpu_of_the_gang(
    stand: Stand, nodes: dict[str, JoinedNode], shared: Path
) -> None:
    job_id = submit(stand, TORCHRUN, shared, **OLD_TORCHRUN)
    row = ended(stand, job_id)
    assert sorted(row["nodes"]) == sorted(nodes)
    assert (shared / "run-18" / "attempt-000001" / "step-000000200.pt").exists()
    weights(stand, job_id, 200)


def test_a_program_of_jax_begins_in_the_cluster_of_its_gang(
    stand: Stand, nodes: dict[str, JoinedNode], shared: Path
) -> None:
    (shared / "jax.py").write_text(JAX_STAND_IN)
    stand_in = {"--framework jax": f"--framework jax --env PYTHONPATH={shared}"}
    job_id = submit(stand, JAX, shared, **stand_in)
    ended(stand, job_id)
    line = r"process (\d) of 2 has 2 of 4 devices"
    eventually(lambda: sorted(lines(stand, job_id, line)) == [("0",), ("1",)])


@pytest.mark.skipif(
    not shutil.which("mpirun", path=DEFAULT_PATH), reason="workers find no mpirun of Open MPI"
)
def test_mpirun_starts_a_process_for_each_gpu_of_the_gang(
    stand: Stand, nodes: dict[str, JoinedNode]
) -> None:
    job_id = submit_block(stand, MPI, {})
    row = ended(stand, job_id)
    assert sorted(row["nodes"]) == sorted(nodes)
    line = r"0: process (\d) of 4 in worker (\d)"
    placed = [("0", "0"), ("1", "0"), ("2", "1"), ("3", "1")]
    eventually(lambda: sorted(lines(stand, job_id, line)) == placed)


def test_the_ledgers_are_sound(stand: Stand) -> None:
    assert stand.verify().violations == []
