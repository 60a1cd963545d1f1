"""The agent of a started `docker-compose.yml`, with two tenants of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.parts.isolation.node import ConfinedNode
from benchmarks.parts.isolation.two_tenants import ATTACKER, OTHER, TwoTenants, tenant_api
from berth_agent.node import config
from cli.stack.bring_up import own_api
from infra.compose import project
from infra.compose.containers import containers
from infra.image import node
from infra.machine.process import DidNotStart
from infra.supervisor.running import load
from infra.supervisor.stack import AGENT

POOL = "local"


def is_up() -> bool:
    """Return whether the containers run here, where this user can look into them."""
    if os.geteuid() != 0 or not shutil.which("docker"):
        return False
    try:
        return bool(_running())
    except DidNotStart:  # Docker is installed, and its engine does not run.
        return False


@contextmanager
def in_containers() -> Iterator[TwoTenants]:
    """Run the neighbour's job on the node of pool `local`; it is cancelled afterwards."""
    stack = load(project.FOLDER)
    admin = own_api(stack)
    for tenant in (ATTACKER, OTHER):
        words = ["tenants", "add", tenant, "--pool", POOL, "--data", str(project.FOLDER)]
        added = [sys.executable, "-m", "cli", *words]
        subprocess.run(added, check=True, stdout=sys.stderr)
    red, blue = tenant_api(admin, ATTACKER), tenant_api(admin, OTHER)
    tenants = TwoTenants(
        admin, red, blue, containers_node(_pid()), node.NODE, POOL, project.FOLDER.parent
    )
    tenants.start_neighbour()
    try:
        yield tenants
    finally:
        tenants.cancel(blue, tenants.neighbour)


def containers_node(pid: int) -> ConfinedNode:
    """Return the node whose first process is this one."""
    settings = config.load(node.CONFIG, {})
    return ConfinedNode(
        node.DATA,
        Path(settings.state),
        Path(settings.run),
        settings.disk_gib,
        settings.output_mib,
        Path(f"/proc/{pid}/root"),
    )


def _running() -> list[str]:
    return [item.id for item in containers() if (item.service, item.state) == (AGENT, "running")]


def _pid() -> int:
    (container,) = _running()
    return int(project.output(["docker", "inspect", "--format", "{{.State.Pid}}", container]))
