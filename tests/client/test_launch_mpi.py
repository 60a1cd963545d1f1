"""The real Open MPI across workers, which are processes of this machine, without SSH."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager

import pytest

from berth_client import launch_mpi
from berth_client.frameworks import mpi_command
from tests.client.ranks import Ranks, line, output, ranks
from tests.patience import PATIENCE_S

PLACE = 'echo "process $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE in worker $RANK"'
WAITS = f"""
trap 'touch saved-$OMPI_COMM_WORLD_RANK; exit' TERM
{PLACE}
while :; do sleep 0.05; done
"""
needs_mpi = pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun is installed")


def gang_of(command: Sequence[str]) -> AbstractContextManager[Ranks]:
    """Return workers with two processes each."""
    words = mpi_command(command, {"gpus_per_worker": 2})
    return ranks([sys.executable, *words[1:]])


def test_a_host_has_a_line_for_each_of_its_processes() -> None:
    lines = launch_mpi.host_lines(3, 2).split()
    assert lines == ["localhost"] * 2 + ["rank-1"] * 2 + ["rank-2"] * 2


@pytest.mark.process
def test_a_worker_without_mpi_says_so() -> None:
    with gang_of(["true"]) as gang:
        first = gang.start(0, 1, PATH="/nowhere")
        assert "mpirun is not in the PATH" in output(first) and first.returncode == 1


@pytest.mark.parts
@pytest.mark.process
@needs_mpi
def test_each_worker_has_its_processes_and_their_exit_code_is_that_of_the_gang() -> None:
    with gang_of(["sh", "-c", f"{PLACE}; exit 7"]) as gang:
        first, *others = [gang.start(rank, 3) for rank in range(3)]
        shown = output(first).splitlines()
        placed = {text for text in shown if text.startswith("process ")}
        # The first end by an error stops processes that have not begun.
        assert placed <= {f"process {rank} of 6 in worker {rank // 2}" for rank in range(6)}
        assert placed and first.returncode == 7
        assert [(output(rank), rank.returncode) for rank in others] == [("", 0)] * 2


@pytest.mark.parts
@pytest.mark.process
@needs_mpi
def test_processes_of_all_workers_get_sigterm() -> None:
    longer = {"OMPI_MCA_odls_base_sigkill_timeout": "10"}
    with gang_of(["sh", "-c", WAITS]) as gang:
        first, *others = [gang.start(rank, 3, **longer) for rank in range(3)]
        begun = sorted(line(first) for _ in range(6))
        assert begun == [f"process {rank} of 6 in worker {rank // 2}\n" for rank in range(6)]
        for process in (first, *others):
            process.send_signal(signal.SIGTERM)
        output(first)
        assert first.returncode
        assert sorted(path.name for path in gang.folder.glob("saved-*")) == [
            f"saved-{rank}" for rank in range(6)
        ]
        assert [rank.wait(PATIENCE_S) for rank in others] == [0, 0]


@pytest.mark.parts
@pytest.mark.process
@needs_mpi
def test_a_lost_worker_ends_the_gang() -> None:
    with gang_of(["sh", "-c", WAITS]) as gang:
        first, _, last = (gang.start(rank, 3) for rank in range(3))
        for _ in range(6):
            line(first)
        last.kill()
        assert "rank 2: its connection is lost" in output(first)
        assert first.returncode == 1
