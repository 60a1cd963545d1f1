"""A process that has loaded the program of a step before there is a worker for it.

The start of a Python and its imports are the longest part of a worker's start. The spare process
waits for the folder of an allocation, and becomes its step as one that is started then.
"""

from __future__ import annotations

import logging
import os
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from berth_agent.node.system.machine import isolated_command
from berth_agent.token_names import STEP_TOKEN
from berth_agent.tokens import NodeTokens

START_S = 60.0
REFILL_S = 0.2
"""After a spare was taken, until the next one is started: the worker's own start comes first."""
RETRY_S = 60.0
CODE = """import os
from berth_agent.step.main import main
folder = os.fsdecode(os.read(0, 65536))
sys.exit(main([folder]) if folder else 0)"""
"""An agent that ends closes the pipe, and the spare process ends."""
AT_ONCE = """from berth_agent.step.main import main
sys.exit(main(sys.argv[1:]))"""

log = logging.getLogger(__name__)


class StartTimedOut(Exception):
    """A step did not start in time."""


@dataclass(frozen=True, slots=True)
class _Spare:
    token: str
    process: subprocess.Popen[bytes]

    def waits(self) -> bool:
        return self.process.poll() is None


class SpareStep:
    """At most one spare process; methods may be called by any thread.

    The environment of a process shows which worker it belongs to, also where the state folder is
    lost. That of the spare has the token that the next worker gets.
    """

    def __init__(self, state: str, read_tokens: Callable[[], NodeTokens]) -> None:
        self._state = state
        self._read_tokens = read_tokens
        self._lock = threading.Lock()
        self._spare: _Spare | None = None
        self._taken: dict[str, _Spare] = {}
        self._refill_s = 0.0

    def new_token(self) -> str:
        """Return the token of a new worker, which takes the spare process if there is one."""
        tokens = self._read_tokens()
        with self._lock:
            spare, self._spare = self._spare, None
            self._refill_s = monotonic() + REFILL_S
            if spare is None:
                return tokens.new()
            if spare.waits() and spare.token.startswith(tokens.prefix):
                self._taken[spare.token] = spare
                return spare.token
        _end(spare)
        return tokens.new()

    def tokens(self) -> set[str]:
        """Return the token of the spare process, which belongs to no worker yet."""
        with self._lock:
            return {self._spare.token} if self._spare else set()

    def refill(self) -> None:
        """Start the next spare process, once it is due; without one, workers start as well."""
        with self._lock:
            spare = self._spare
            if monotonic() < self._refill_s or (spare is not None and spare.waits()):
                return
            token = self._read_tokens().new()
            try:
                process = _popen(isolated_command(CODE, f"{self._state}/spare"), token)
            except OSError as error:
                log.warning("no spare process for the next worker: %s", error)
                self._refill_s = monotonic() + RETRY_S
                return
            self._spare = _Spare(token, process)

    def drop(self, token: str) -> None:
        """End the process that a worker took, as it does not start."""
        with self._lock:
            spare = self._taken.pop(token, None)
        if spare is not None:
            _end(spare)

    def close(self) -> None:
        """End the spare process."""
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is not None:
            _end(spare)

    def start(self, token: str, folder: str) -> tuple[int, str]:
        """Start the step of a folder; return the exit code of its first process and its errors.

        Without a spare process for the token, one is started. Raises StartTimedOut, OSError.
        """
        with self._lock:
            spare = self._taken.pop(token, None)
        if spare is not None:
            code, errors = _finish(spare.process, os.fsencode(folder))
            if code == 0:
                return code, errors
        return _finish(_popen(isolated_command(AT_ONCE, folder), token), b"")


def _popen(command: list[str], token: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    env = {STEP_TOKEN: token, "PATH": os.defpath}
    return subprocess.Popen(command, env=env, stdin=pipe, stdout=subprocess.DEVNULL, stderr=pipe)


def _finish(process: subprocess.Popen[bytes], request: bytes) -> tuple[int, str]:
    try:
        _, errors = process.communicate(request, timeout=START_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise StartTimedOut(f"no start within {START_S:g} s") from None
    return process.returncode, errors.decode(errors="replace")


def _end(spare: _Spare) -> None:
    """End a process that waits; it runs nothing yet."""
    spare.process.kill()
    spare.process.communicate()
