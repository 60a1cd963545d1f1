"""Users, rights, limits, ports and secrets of the containers, as Docker reports them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from infra.compose import project as compose_project
from infra.compose.secrets import PASSWORD
from infra.supervisor.stack import PARTS, SERVICES, STEPS
from tests.compose.project import Project, docker

pytestmark = [pytest.mark.compose, pytest.mark.parts]
LASTING = tuple(service.name for service in (*PARTS, *SERVICES))
NAMES = (*LASTING, *(step.name for step in STEPS))
every = pytest.mark.parametrize("service", NAMES)
lasting = pytest.mark.parametrize("service", LASTING)
MIB = 1 << 20


@every
def test_a_container_has_no_rights_and_a_bound(project: Project, service: str) -> None:
    container = project.inspect(service)
    host = container["HostConfig"]
    assert container["Config"]["User"] not in ("", "0", "root")
    assert host["ReadonlyRootfs"] and not host["Privileged"]
    assert [right.removeprefix("CAP_") for right in host["CapDrop"]] == ["ALL"]
    assert not host["CapAdd"]
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert 0 < host["PidsLimit"] <= 256
    assert 0 < host["Memory"] <= 1024 * MIB


@lasting
def test_its_processes_are_as_docker_says(project: Project, service: str) -> None:
    status = Path(f"/proc/{project.inspect(service)['State']['Pid']}/status")
    if not status.exists():
        pytest.skip("Docker does not run on this machine's own kernel")
    fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
    assert "0" not in fields["Uid"].split()
    assert {int(fields[name], 16) for name in ("CapEff", "CapPrm", "CapBnd")} == {0}
    assert fields["NoNewPrivs"].strip() == "1"
    assert fields["Seccomp"].strip() == "2"


@every
def test_ports_are_published_on_the_loopback_only(project: Project, service: str) -> None:
    ports = project.inspect(service)["NetworkSettings"]["Ports"].values()
    assert {binding["HostIp"] for bindings in ports for binding in bindings or ()} <= {"127.0.0.1"}


@every
def test_the_databases_password_is_in_no_log_and_no_setting(project: Project, service: str) -> None:
    secret = (compose_project.ROOT / compose_project.variables()["SECRETS"] / PASSWORD).read_text()
    container = project.named(service).id
    done = subprocess.run(["docker", "logs", container], capture_output=True, text=True, check=True)
    assert secret not in docker("inspect", container) + done.stdout + done.stderr


@lasting
def test_it_stays_below_three_quarters_of_its_memory(project: Project, service: str) -> None:
    output = docker("stats", "--no-stream", "--format", "{{.MemPerc}}", project.named(service).id)
    percent = re.match(r"([0-9.]+)%", output)
    assert percent and float(percent[1]) < 75, output
