"""The containers of the project: their state and health, and a wait until they are well."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from typing import Any

from infra.compose import project
from infra.machine.process import DidNotStart

READY_S = 300.0
POLL_S = 0.5
LAST_LINES = "15"


@dataclass(frozen=True, slots=True)
class Container:
    """A container of the project; `health` is empty if the image has no health check."""

    service: str
    name: str
    id: str
    state: str
    exit_code: int
    health: str

    @property
    def is_well(self) -> bool:
        """Return whether it is healthy, or has ended with 0 if it is a one-shot step."""
        if self.state == "exited":
            return self.exit_code == 0
        return self.state == "running" and self.health in ("", "healthy")


def containers() -> list[Container]:
    """Return the containers of the project, running or not."""
    name = project.variables()["COMPOSE_PROJECT_NAME"]
    listed = project.output(
        [
            "docker",
            "ps",
            "--all",
            "--quiet",
            "--no-trunc",
            "--filter",
            f"label=com.docker.compose.project={name}",
        ]
    )
    ids = listed.split()
    inspected = json.loads(project.output(["docker", "inspect", *ids])) if ids else []
    return sorted(
        (_container(container) for container in inspected), key=lambda container: container.service
    )


def wait_well(services: tuple[str, ...] = (), timeout_s: float = READY_S) -> None:
    """Wait until these containers, or all, are healthy. Raises DidNotStart with the log's end."""
    ends = time.monotonic() + timeout_s
    while bad := [
        container
        for container in containers()
        if container.is_well is False and (not services or container.service in services)
    ]:
        if time.monotonic() > ends:
            first = bad[0]
            raise DidNotStart(
                f"{first.service} is {first.health or first.state}: {log_tail(first)}"
            )
        time.sleep(POLL_S)


def log_tail(container: Container) -> str:
    """Return the last lines of a container's log."""
    command = ["docker", "logs", "--tail", LAST_LINES, container.id]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip() or "no output"


def _container(answer: dict[str, Any]) -> Container:
    state = answer["State"]
    return Container(
        service=answer["Config"]["Labels"]["com.docker.compose.service"],
        name=answer["Name"].lstrip("/"),
        id=answer["Id"],
        state=state["Status"],
        exit_code=state["ExitCode"],
        health=state.get("Health", {}).get("Status", ""),
    )
