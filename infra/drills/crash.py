"""`python -m infra.drills.crash SERVICE`: kill a service with SIGKILL and time its recovery.

`BERTH_HOME` is the data directory of `berth up`, `berth demo` or the containers.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from infra.compose import containers as compose
from infra.machine.process import DidNotStart
from infra.supervisor import supervise
from infra.supervisor.running import load

BACK_S = 120.0
POLL_S = 0.1
KILL_ALL = (
    "import os, signal\n"
    "pids = {int(name) for name in os.listdir('/proc') if name.isdigit()} - {1, os.getpid()}\n"
    "[os.kill(pid, signal.SIGKILL) for pid in pids]"
)
"""Python program that kills all processes of a container but Docker's init."""


def crash(folder: Path, service: str) -> float:
    """Kill a service; return the seconds until it is ready again. Raises DidNotStart."""
    began = time.monotonic()
    if load(folder.resolve()).ports:
        _crash_process(folder, service)
    else:
        _crash_container(service)
    return time.monotonic() - began


def _crash_process(folder: Path, service: str) -> None:
    """Kill a process of the supervisor and wait until it is ready again."""
    before = _until(lambda: supervise.pid_of(folder, service), service)
    os.kill(before, signal.SIGKILL)
    _until(lambda: supervise.pid_of(folder, service) not in (0, before), service)
    supervise.wait_ready(folder, (service,), BACK_S)


def _crash_container(service: str) -> None:
    matching = [container for container in compose.containers() if container.service == service]
    if not matching:
        raise DidNotStart(f"no container of a service {service}")
    before = _restarts(matching[0].id)
    kill_all(matching[0].id)
    _until(lambda: _restarts(matching[0].id) > before, service)
    compose.wait_well((service,), BACK_S)


def kill_all(container_id: str) -> None:
    """Kill all processes of a container but its init."""
    subprocess.run(
        ["docker", "exec", container_id, "python", "-c", KILL_ALL], capture_output=True, check=False
    )


def _restarts(container_id: str) -> int:
    command = ["docker", "inspect", "--format", "{{.RestartCount}}", container_id]
    return int(subprocess.run(command, capture_output=True, check=True).stdout)


def _until(poll: Callable[[], int], service: str) -> int:
    ends = time.monotonic() + BACK_S
    while not (value := poll()):
        if time.monotonic() > ends:
            raise DidNotStart(f"{service} did not come back within {BACK_S:.0f} s")
        time.sleep(POLL_S)
    return value


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m infra.drills.crash", description=__doc__)
    parser.add_argument("service", help="such as placement")
    default = os.environ.get("BERTH_HOME", ".berth")
    parser.add_argument("--data", type=Path, default=default, help="folder of the stack")
    options = parser.parse_args()
    try:
        took_s = crash(options.data, options.service)
    except DidNotStart as error:
        raise SystemExit(str(error)) from None
    print(f"{options.service} was killed and is well after {took_s:.1f} s", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
