"""Ranks run what rank 0 sends, of their own gang alone, and end with it: real processes."""

from __future__ import annotations

import signal
import socket
import sys
from contextlib import AbstractContextManager

import pytest

from berth_client.frameworks import _modules
from tests.client.ranks import Ranks, line, output, ranks
from tests.patience import PATIENCE_S

LAUNCHER = """
import os, sys, time
from berth_client.launch_gang import Gang, hold, read_key
from berth_client.launch_program import new_folder

def main():
    read_key()
    if os.environ["RANK"] != "0":
        sys.exit(hold())
    gang = Gang()
    for member in gang.members.values():
        member.run(["sh", "-c", sys.argv[1]], new_folder("gang"), {"FROM": "rank 0"})
    print("runs", sorted(gang.members), flush=True)
    while not gang.failure() and not os.path.exists("finish"):
        time.sleep(0.05)
    print(gang.failure(), flush=True)
    gang.end()
"""
pytestmark = pytest.mark.process


def gang_of(program: str) -> AbstractContextManager[Ranks]:
    """Return workers that run a program on all ranks but 0 until the file `finish` is there."""
    words = [
        LAUNCHER if word.startswith('"""Starts a Ray') else word for word in _modules("launch_ray")
    ]
    return ranks([sys.executable, "-c", *words, program])


def test_each_rank_runs_what_rank_0_sends_and_ends_with_it() -> None:
    with gang_of('echo "$FROM to $RANK" >> ran; exec sleep 3600') as gang:
        first, *others = [gang.start(rank, 3) for rank in range(3)]
        assert line(first) == "runs [1, 2]\n"
        ran = gang.folder / "ran"
        while not (ran.exists() and len(ran.read_text().splitlines()) == 2):
            assert first.poll() is None
        (gang.folder / "finish").touch()
        assert output(first) == "\n" and first.returncode == 0
        assert [(output(rank), rank.returncode) for rank in others] == [("", 0), ("", 0)]
        assert sorted(ran.read_text().splitlines()) == ["rank 0 to 1", "rank 0 to 2"]


def test_a_program_that_fails_is_reported_to_rank_0_and_printed() -> None:
    with gang_of("echo broken; exit 3") as gang:
        first, other = (gang.start(rank, 2) for rank in range(2))
        line(first)
        assert output(first) == "rank 1: its program ended with exit code 3\n"
        assert output(other) == "broken\n" and other.returncode == 0


def test_a_lost_rank_is_noticed_by_rank_0() -> None:
    with gang_of("exec sleep 3600") as gang:
        first, other = (gang.start(rank, 2) for rank in range(2))
        line(first)
        other.kill()
        assert output(first) == "rank 1: its connection is lost\n"


def test_a_rank_without_rank_0_waits_for_berth() -> None:
    with gang_of("exec sleep 3600") as gang:
        first, other = (gang.start(rank, 2) for rank in range(2))
        line(first)
        first.kill()
        assert line(other) == "rank 0 is lost: it has ended\n"
        assert other.poll() is None
        other.terminate()
        assert other.wait(PATIENCE_S) == 128 + signal.SIGTERM


@pytest.mark.parametrize("other", [{"GANG_KEY": "other"}, {"BERTH_ATTEMPT": "2"}])
def test_a_rank_of_another_gang_runs_nothing(other: dict[str, str]) -> None:
    with gang_of("exec sleep 3600") as gang:
        first, stranger = gang.start(0, 2), gang.start(1, 2, **other)
        # It connects first and sends nothing, which keeps no other rank out.
        silent = socket.socket()
        while silent.connect_ex(("127.0.0.1", gang.port)):
            assert first.poll() is None
        assert "rank 0 has another GANG_KEY" in output(stranger) and stranger.returncode == 1
        assert line(first).startswith("refused a connection from 127.0.0.1")
        gang.start(1, 2)
        assert line(first) == "runs [1]\n"
        silent.close()


def test_several_workers_without_a_secret_do_not_start() -> None:
    with gang_of("true") as gang:
        first = gang.start(0, 2, GANG_KEY="")
        assert "GANG_KEY is empty" in output(first) and first.returncode == 1


def test_the_secret_is_read_from_a_file() -> None:
    with gang_of("exec sleep 3600") as gang:
        file = gang.folder / "key"
        file.write_text("of a file\n")
        first = gang.start(0, 2, GANG_KEY_FILE=str(file))
        gang.start(1, 2, GANG_KEY="of a file")
        assert line(first) == "runs [1]\n"
