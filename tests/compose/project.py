"""A started compose project, and calls that drive it from outside."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

from infra.compose import containers as compose
from infra.compose import project as compose_project
from infra.drills.crash import kill_all
from tests.e2e.stand import Json, Stand, a_submission, eventually

WELL_S = 240.0
"""Far above what a quiet machine needs: services that lost the broker are restarted in turns."""


@dataclass(slots=True)
class Project:
    """`stand` is its API from outside; `tenant` is this run's own. No key is shown on a failure."""

    stand: Stand = field(repr=False)
    tenant: str

    def submit(self, **spec: Any) -> str:
        return str(self.stand.submit(caller="tenant", **spec)["job_id"])

    def publish(self, key: str) -> None:
        """Publish a job as a tenant's own producer does, without the gateway."""
        self.stand.publish(f"submissions.{self.tenant}", 0, a_submission(key))

    def named(self, service: str) -> compose.Container:
        (container,) = [item for item in compose.containers() if item.service == service]
        return container

    def inspect(self, service: str) -> Any:
        (container,) = json.loads(docker("inspect", self.named(service).id))
        return container

    def python(self, service: str, code: str) -> str:
        return docker("exec", self.named(service).id, "python", "-c", code)

    def crash(self, service: str) -> None:
        """Kill its processes by SIGKILL; return once Docker has restarted the container."""
        before = self.inspect(service)["RestartCount"]
        kill_all(self.named(service).id)
        eventually(lambda: self.inspect(service)["RestartCount"] > before, WELL_S)

    def well(self, *services: str) -> None:
        compose.wait_well(services, WELL_S)


def docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def cli(*words: str) -> Json:
    """Run the berth command; return its JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "cli", *words, "--json", "--data", str(compose_project.FOLDER)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, (words, done.stderr, done.stdout)
    return json.loads(done.stdout)  # type: ignore[no-any-return]
