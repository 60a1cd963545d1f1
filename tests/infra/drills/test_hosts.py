"""Packets of one direction are lost while a host is cut off, and pass afterwards."""

from __future__ import annotations

import subprocess
import sys

import pytest

from infra.drills import hosts
from infra.drills.hosts import Direction, Host

PORT = "5000"
RECEIVE = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
    server.bind((sys.argv[1], int(sys.argv[2])))
    print("bound", flush=True)
    while True:
        print(server.recv(99).decode(), flush=True)
"""
SEND = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.sendto(sys.argv[3].encode(), (sys.argv[1], int(sys.argv[2])))
"""
pytestmark = pytest.mark.process


@pytest.fixture(scope="module", autouse=True)
def namespaces() -> None:
    if reason := hosts.missing():
        pytest.skip(reason)


@pytest.mark.parametrize(
    ("sender", "receiver", "direction", "passed"),
    [
        ("one", "two", "from_host", ["first", "last"]),
        ("two", "one", "to_host", ["first", "last"]),
        ("two", "one", "from_host", ["first", "between", "last"]),
        ("one", "two", "to_host", ["first", "between", "last"]),
    ],
)
def test_what_is_sent_meanwhile_is_lost_in_one_direction_alone(
    sender: str, receiver: str, direction: Direction, passed: list[str]
) -> None:
    with hosts.network(("one", "two")) as network:
        source, target = network.hosts[sender], network.hosts[receiver]
        with receiving(target) as running:
            assert running.stdout is not None
            lines = (line.rstrip("\n") for line in running.stdout)
            assert next(lines) == "bound"
            send(source, target, "first")
            got = [next(lines)]  # Both know each other's addresses now.
            network.lose("one", direction)
            send(source, target, "between")
            network.lose_no_more("one", direction)
            send(source, target, "last")
            while got[-1] != "last":
                got.append(next(lines))
            running.kill()
    assert got == passed


def receiving(target: Host) -> subprocess.Popen[str]:
    command = target.command([sys.executable, "-Ic", RECEIVE, target.address, PORT])
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def send(source: Host, target: Host, text: str) -> None:
    done = source.run([sys.executable, "-Ic", SEND, target.address, PORT, text])
    assert done.returncode == 0, done.stderr
