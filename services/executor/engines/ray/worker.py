"""Runs one worker of a gang on a node of Ray; a copy of this file lies in the gang's folder.

It needs Python 3.9 and nothing else. It stands ready, begins its program when the executor decided
that this job of Ray may, signals it at the executor's word, and notes its end. As Ray has no lease,
it requests the state of its own job again and again: where Ray does not know it as running any
more, or has not answered for `stop_after_s`, the program is killed.

The program is in a session of its own whose leader kills it when this process is gone, however it
ends, so that nothing of it outlives Ray's job.
"""

from __future__ import annotations

import ctypes
import http.client
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

POLL_S = 0.1
FORBIDDEN = "forbidden"
PORT, TERM, KILL = "port", "signal-term", "signal-kill"
"""Files of the executor: the port of the rendezvous, and that a signal is to be sent."""
PR_SET_PDEATHSIG = 1
UNKNOWN = b"does not exist"
"""Ray's own words for a job that it does not know."""
MALFORMED = (AttributeError, LookupError, TypeError, ValueError)
"""Errors by an answer that is none of Ray's."""
CLOCK_RATE, KILL_S = 1.05, 5.0
"""Two clocks differ by less, and a last kill takes no longer."""
KILLED_BY_RAY_S = 2.0
"""Ray kills 3 s after its SIGTERM."""


class Lease:
    """The time of the last request that Ray answered with: this job is running."""

    def __init__(self, job: str, stop_after_s: float) -> None:
        self._job, self._stop_after_s = job, stop_after_s
        self._renewed_s = time.monotonic()
        self.is_ended = False
        """Ray answered that the job is over."""
        self._is_over = False
        self._submitted: Any = None
        threading.Thread(target=self._keep, daemon=True).start()

    @property
    def is_over(self) -> bool:
        """Return whether the program has to end; a late answer of Ray changes that no more."""
        waited_s = time.monotonic() - self._renewed_s
        self._is_over = self._is_over or self.is_ended or waited_s >= self._stop_after_s
        return self._is_over

    def guard(self, leader: subprocess.Popen[bytes]) -> None:
        """Kill its session once the lease is over, whatever this process waits for meanwhile.

        A folder of a network and a name server may both hold up a request for minutes.
        """
        threading.Thread(target=self._guard, args=(leader,), daemon=True).start()

    def _guard(self, leader: subprocess.Popen[bytes]) -> None:
        while not self.is_over:
            time.sleep(POLL_S)
        if leader.returncode is None:
            send(leader.pid, signal.SIGKILL)

    def _keep(self) -> None:
        every_s = self._stop_after_s / 6
        # Addresses of the site are reached without a proxy.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while not self.is_ended:
            begun_s = time.monotonic()
            try:
                request = urllib.request.Request(self._job, headers=token_header())
                with opener.open(request, timeout=every_s * 2) as answer:
                    self._renew(json.load(answer), begun_s)
            except urllib.error.HTTPError as error:
                # What lies between may answer with 404 too.
                with suppress(OSError, http.client.HTTPException):
                    self.is_ended = error.code == 404 and UNKNOWN in error.read(1024)
            except (OSError, http.client.HTTPException, *MALFORMED):
                pass
            time.sleep(every_s)

    def _renew(self, job: dict[str, Any], begun_s: float) -> None:
        """Take the answer to a request that began at that time.

        A Ray that forgot all may have been given a job of the same name, which is another one.
        """
        submitted = job.get("start_time")
        if self._submitted is None:
            self._submitted = submitted
        if job["status"] in ("PENDING", "RUNNING") and submitted == self._submitted:
            self._renewed_s = begun_s
        else:
            self.is_ended = True


def token_header() -> dict[str, str]:
    """Return the header by which a dashboard with tokens knows a node, from where Ray has it."""
    token = os.environ.get("RAY_AUTH_TOKEN", "")
    if not token:
        path = os.environ.get("RAY_AUTH_TOKEN_PATH") or os.path.expanduser("~/.ray/auth_token")
        with suppress(OSError):
            token = Path(path).read_text().strip()
    return {"Authorization": f"Bearer {token}"} if token else {}


def main(folder: Path, rank: int, writing: int | None = None, parent: int = 0) -> int:
    """Run the worker to its end; return its exit code, 0 where its program is forbidden.

    With `writing`, a pipe, and the process of the wrapper it leads the program's session.
    """
    inputs = json.loads((folder / f"rank-{rank}.json").read_text())
    if writing is not None:
        return lead(inputs, folder, rank, writing, parent)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    lease = Lease(inputs["job"], inputs["stop_after_s"])
    (folder / f"rank-{rank}.ready").touch()
    while True:
        with suppress(OSError):
            decided = os.readlink(folder / "decided")
            if decided == FORBIDDEN:
                return 0
            if decided == inputs["begins"]:
                break
        if stopped.is_set() or lease.is_over:
            # Ray says that it failed, so that the rest of its gang does not begin without it.
            return 1
        time.sleep(POLL_S)
    try:
        (folder / f"rank-{rank}.begun").mkdir()
    except FileExistsError:
        return outwait(folder, rank, inputs)
    return run(folder, rank, inputs, lease, stopped)


def outwait(folder: Path, rank: int, inputs: dict[str, Any]) -> int:
    """Hold the GPUs until a worker of the same name has ended, which Ray ran before it forgot it.

    Its program has begun, and begins once: without a note it ends within its lease, which another
    job does not renew.
    """
    end_s = time.monotonic() + inputs["stop_after_s"] * CLOCK_RATE + KILL_S
    while time.monotonic() < end_s and not (folder / f"rank-{rank}.end").exists():
        time.sleep(POLL_S)
    return 0


def run(
    folder: Path, rank: int, inputs: dict[str, Any], lease: Lease, stopped: threading.Event
) -> int:
    """Run the program; note its end once no process of its session is left."""
    begun_s = time.monotonic()
    reading, writing = os.pipe()
    with (folder / f"rank-{rank}.out").open("ab") as output:
        leader = subprocess.Popen(
            [sys.executable, "-S", "-E", __file__, str(rank), str(writing), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=(writing,),
        )
    os.close(writing)
    lease.guard(leader)
    reason = watch(leader, folder, inputs, lease, stopped)
    send(leader.pid, signal.SIGKILL)
    code = 128 - leader.returncode if leader.returncode < 0 else leader.returncode
    if reason == "walltime":
        code = 128 + signal.SIGTERM
    with open(reading, "rb") as pipe:
        reason = reason or pipe.read().decode()
    ran_ms = round((time.monotonic() - begun_s) * 1000)
    new = folder / f"rank-{rank}.end.new"
    new.write_text(f"{code} {ran_ms} {round(time.time() * 1000)} {reason}\n")
    new.rename(folder / f"rank-{rank}.end")
    return code


def watch(
    leader: subprocess.Popen[bytes],
    folder: Path,
    inputs: dict[str, Any],
    lease: Lease,
    stopped: threading.Event,
) -> str:
    """Wait for the program, and signal it; return why it was ended, "" if not by this process."""
    begun_s, reason, kill_s, is_signalled = time.monotonic(), "", math.inf, False
    walltime_s = math.inf if inputs["walltime_s"] is None else inputs["walltime_s"]
    while leader.poll() is None:
        now_s = time.monotonic()
        if lease.is_over:
            reason = reason or "step_lost"
        elif now_s - begun_s >= walltime_s and not reason:
            reason, kill_s = "walltime", now_s + inputs["grace_s"]
            send(leader.pid, signal.SIGTERM)
        elif not is_signalled and (stopped.is_set() or (folder / TERM).exists()):
            is_signalled = True
            send(leader.pid, signal.SIGTERM)
            kill_s = now_s + KILLED_BY_RAY_S if stopped.is_set() else kill_s
        if now_s >= kill_s or (folder / KILL).exists():
            send(leader.pid, signal.SIGKILL)
        time.sleep(POLL_S)
    return reason or ("step_lost" if lease.is_over and leader.returncode else "")


def send(leader: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, number)


def lead(inputs: dict[str, Any], folder: Path, rank: int, writing: int, parent: int) -> int:
    """Run the program as the leader of its session; write to that pipe why it cannot begin."""
    signal.signal(signal.SIGUSR1, lambda *_: os.killpg(0, signal.SIGKILL))
    signal.signal(signal.SIGTERM, lambda *_: None)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGUSR1)
    if os.getppid() != parent:
        return 1
    own_gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    port = (folder / PORT).read_text().strip()
    home = os.environ.get("HOME", "/")
    variables = {"HOME": home, **inputs["environment"], "MASTER_PORT": port}
    variables["CUDA_VISIBLE_DEVICES"] = own_gpus
    workdir = Path(inputs["workdir"] or folder / f"work-{rank}")
    if not inputs["workdir"]:
        workdir.mkdir(exist_ok=True)
    if not workdir.is_dir():
        os.write(writing, b"workdir_missing")
        return 1
    os.chdir(workdir)
    if shutil.which(inputs["command"][0], path=variables.get("PATH")) is None:
        os.write(writing, b"command_missing")
        return 127
    try:
        code = subprocess.Popen(inputs["command"], env=variables).wait()
    except OSError as error:
        os.write(2, f"{inputs['command'][0]}: {error.strerror}\n".encode())
        os.write(writing, b"start_failed")
        return 1
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parent, *map(int, sys.argv[1:])))
