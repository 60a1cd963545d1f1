"""Programs that a launcher starts beside the user's, and ends with it."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

STOP_S = 10.0


class Program:
    """A program in a session of its own, with a folder that goes with it.

    Berth signals the process group of a worker: this program goes on until its launcher ends it.
    What it writes is kept, and printed only where it fails.
    """

    def __init__(self, argv: Sequence[str], folder: str, env: Mapping[str, str]) -> None:
        os.mkdir(folder, 0o700)
        self._folder, self._is_closed = folder, False
        self._output = os.path.join(folder, "output")
        with open(self._output, "wb") as output:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **env},
                start_new_session=True,
            )

    def report(self) -> None:
        """Print what the program has written, unless it was ended by `close`."""
        if self._is_closed:
            return
        with open(self._output, errors="replace") as output:
            print(output.read(), end="", flush=True)

    def close(self) -> None:
        self._is_closed = True
        stop(self.process)
        shutil.rmtree(self._folder, ignore_errors=True)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a program that leads its session: by SIGTERM, and by SIGKILL after 10 s."""
    terminate(process)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def terminate(process: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM to the session of a program that leads it, as Berth does to a worker's group."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)


def exit_status(code: int) -> int:
    """Return the exit status of a program as a shell has it."""
    return 128 - code if code < 0 else code


def free_port(address: str) -> int:
    """Return a port of the range from which the kernel takes them, free at this moment."""
    with socket.create_server((address, 0)) as listener:
        return int(listener.getsockname()[1])


def new_folder(name: str, within: str = "/tmp") -> str:
    """Return a path for a new folder; sockets of at most 107 characters lie in it."""
    return f"{within}/{name}-{secrets.token_hex(6)}"
