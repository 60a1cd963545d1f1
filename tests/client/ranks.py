"""Workers of a gang as processes of this machine, as a node would start them."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from infra.machine.process import free_ports
from tests.patience import PATIENCE_S


class Ranks:
    """Starts workers in one folder, with one command."""

    def __init__(self, folder: Path, stack: ExitStack, command: Sequence[str]) -> None:
        self.folder = folder
        self._stack, self._command = stack, command
        [self.port] = free_ports(1)

    def start(self, rank: int, of: int, **env: str) -> subprocess.Popen[str]:
        place = {"RANK": str(rank), "WORLD_SIZE": str(of), "PATH": os.environ["PATH"]}
        own = {"GANG_KEY": "k", "BERTH_JOB_ID": "j", "BERTH_ATTEMPT": "1", **env}
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port)}
        process = subprocess.Popen(
            self._command,
            env=place | address | own,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._stack.enter_context(process)
        self._stack.callback(process.kill)
        return process


@contextmanager
def ranks(command: Sequence[str]) -> Iterator[Ranks]:
    """Workers that are killed at the end of the test."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        yield Ranks(Path(folder), stack, command)


def output(process: subprocess.Popen[str]) -> str:
    """Return what a worker writes from now on until it ends."""
    return process.communicate(timeout=PATIENCE_S)[0]


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()
