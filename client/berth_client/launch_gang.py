"""Rank 0 has every other rank of its gang run a program, until rank 0 ends.

Ranks connect to MASTER_ADDR:MASTER_PORT. Rank 0 and the other rank prove to each other that they
know GANG_KEY and are of the same attempt of a job, as a rank runs whatever rank 0 sends.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any

from berth_client.launch_program import Program, exit_status

RETRY_S, CONNECT_S = 0.2, 10.0
KEEPALIVE_S = (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
"""A node that is off is noticed after 25 s."""
TERMINATED = 128 + signal.SIGTERM


class Member:
    """Another rank, as rank 0 has it: the exit code of its program, and whether it is lost."""

    def __init__(self, connection: Connection, address: str) -> None:
        self.connection, self.address = connection, address
        self.rank = int(receive(connection)["rank"])
        self.exit_code: int | None = None
        self.is_lost = False
        self.has_ended = threading.Event()

    def run(self, argv: Sequence[str], folder: str, env: Mapping[str, str]) -> None:
        """Have the rank run a program, in a new folder: once."""
        # `follow` notices a connection that is lost.
        with suppress(OSError):
            send(self.connection, {"run": [argv, folder, env]})

    def follow(self) -> None:
        try:
            self.exit_code = receive(self.connection)["exit"]
            self.has_ended.set()
            receive(self.connection)
        except (EOFError, OSError):
            self.is_lost = True
            self.has_ended.set()

    def end(self) -> None:
        with suppress(OSError):
            send(self.connection, {"end": True})


class Gang:
    """The other ranks, on rank 0. `address` is the one by which they reach this rank."""

    def __init__(self) -> None:
        """Return when all of them have connected."""
        self.members: dict[int, Member] = {}
        self.address = socket.gethostbyname(os.environ["MASTER_ADDR"])
        self.size = int(os.environ["WORLD_SIZE"])
        if self.size > 1:
            listener = socket.create_server(("", int(os.environ["MASTER_PORT"])), backlog=self.size)
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        while len(self.members) < self.size - 1:
            time.sleep(RETRY_S)

    def failure(self, *, by_exit: bool = True) -> str:
        """Return which rank is lost, or has ended its program, and how; empty if none has."""
        for member in self.members.values():
            if by_exit and member.exit_code is not None:
                return f"rank {member.rank}: its program ended with exit code {member.exit_code}"
            if member.is_lost:
                return f"rank {member.rank}: its connection is lost"
        return ""

    def end(self) -> None:
        for member in self.members.values():
            member.end()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            peer, (address, _) = listener.accept()
            # A thread for each: another program may connect and send nothing.
            threading.Thread(target=self._admit, args=(peer, address), daemon=True).start()

    def _admit(self, peer: socket.socket, address: str) -> None:
        own = peer.getsockname()[0]
        try:
            connection = watched(peer)
            deliver_challenge(connection, proof_key("other"))
            answer_challenge(connection, proof_key("first"))
            member = Member(connection, address)
        except (AuthenticationError, EOFError, OSError) as error:
            print(f"refused a connection from {address}: {error}", flush=True)
            return
        self.address = own
        self.members[member.rank] = member
        member.follow()


def hold() -> int:
    """Run what rank 0 sends until rank 0 ends; return the exit status of this rank.

    Where rank 0 is lost, this rank waits for Berth, which ends the gang for what became of rank 0.
    """
    connection = connect()
    terminated = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: terminated.set())
    program = None
    try:
        send(connection, {"rank": int(os.environ["RANK"])})
        message = receive(connection)
        if "run" in message:
            program = Program(*message["run"])
            threading.Thread(target=_follow, args=(program, connection), daemon=True).start()
            receive(connection)
        return 0
    except (EOFError, OSError) as error:
        print(f"rank 0 is lost: {str(error) or 'it has ended'}", flush=True)
    finally:
        if program is not None:
            program.close()
    terminated.wait()
    return TERMINATED


def connect() -> Connection:
    """Return the connection to rank 0, once that is there."""
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    while True:
        try:
            connection = watched(socket.create_connection(address, CONNECT_S))
            answer_challenge(connection, proof_key("other"))
            deliver_challenge(connection, proof_key("first"))
            return connection
        except AuthenticationError as error:
            sys.exit(f"rank 0 has another GANG_KEY, or is of another job: {error}")
        except (EOFError, OSError):
            time.sleep(RETRY_S)


def read_key() -> str:
    """Set GANG_KEY, and return it: from GANG_KEY_FILE, or a new one for a worker that is alone."""
    path, secret = os.environ.get("GANG_KEY_FILE"), os.environ.get("GANG_KEY", "")
    if path:
        with open(path) as file:
            secret = file.read().strip()
    if not secret and int(os.environ["WORLD_SIZE"]) == 1:
        secret = secrets.token_hex(32)
    if not secret:
        sys.exit("GANG_KEY is empty: several workers need a secret in common")
    os.environ["GANG_KEY"] = secret
    return secret


def proof_key(side: str) -> bytes:
    """Return what one side proves: none may use the proof of another rank as that of rank 0."""
    names = ("GANG_KEY", "BERTH_JOB_ID", "BERTH_ATTEMPT")
    return "/".join((side, *(os.environ.get(name, "") for name in names))).encode()


def watched(peer: socket.socket) -> Connection:
    peer.setblocking(True)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE_S:
        peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return Connection(peer.detach())


def send(connection: Connection, message: Mapping[str, Any]) -> None:
    connection.send_bytes(json.dumps(message).encode())


def receive(connection: Connection) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(connection.recv_bytes())
    return message


def _follow(program: Program, connection: Connection) -> None:
    code = program.process.wait()
    if code:
        program.report()
    # `hold` notices that rank 0 is lost.
    with suppress(OSError):
        send(connection, {"exit": exit_status(code)})
