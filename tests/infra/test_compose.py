"""docker-compose.yml says the same as the list of the stack."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra import compose_secrets
from infra.stack import PARTS, SERVICES, STEPS, Service, Site, environment, step_environment

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
RUN: dict[str, dict[str, Any]] = COMPOSE["services"]
SITE = Site(
    "k:1", "dsn", "http://o", Path("/data"), Path("/data/work"), 16, idempotent=True, durable=True
)
PORTS = {"metrics": 9100, "http": 8080}
BETWEEN_CONTAINERS = {
    "BERTH_HOST", "BERTH_PLAIN_HTTP", "BERTH_SPANS_FROM", "BERTH_METRICS_HOST", "BERTH_METRICS_OF",
    "BERTH_TRACE_SAMPLE",
}  # fmt: skip
"""Settings that only processes on different addresses need, or that an operator gives."""
names = pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)


def _settings(variables: dict[str, Any]) -> set[str]:
    """Names of variables; one that is read from a file is the same setting."""
    return {name.removesuffix("_FILE") for name in variables}


def test_compose_runs_the_parts_steps_and_services_of_the_stack() -> None:
    assert set(RUN) == {each.name for each in (*PARTS, *STEPS, *SERVICES)}


@names
def test_compose_starts_a_service_as_the_supervisor_does(service: Service) -> None:
    run = RUN[service.name]
    assert run["command"] == ["python", *service.arguments]
    assert run["mem_limit"] == f"{service.memory_mib}m"
    assert set(run["depends_on"]) == set(service.needs)


@names
def test_compose_tells_a_service_what_the_supervisor_tells_it(service: Service) -> None:
    told, own = RUN[service.name]["environment"], environment(service, SITE, PORTS)
    assert _settings(told) - BETWEEN_CONTAINERS == set(own)
    assert told["BERTH_INSTANCE"] == own["BERTH_INSTANCE"]
    assert told.get("BERTH_EXECUTOR_ID") == own.get("BERTH_EXECUTOR_ID")
    assert Path(told.get("BERTH_NODES", "")).name == service.inventory


def test_the_gateways_page_asks_every_service() -> None:
    told = RUN["gateway"]["environment"]["BERTH_METRICS_OF"]
    assert told.split(",") == [f"{each.name}={each.name}:9100" for each in SERVICES]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_compose_runs_a_step_as_the_supervisor_does(step: Any) -> None:
    run = RUN[step.name]
    assert run["command"] == ["python", *step.arguments]
    assert _settings(run["environment"]) == set(step_environment(step, SITE))
    assert set(run["depends_on"]) == set(step.needs)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_part_has_its_memory_limit(part: Any) -> None:
    assert RUN[part.name]["mem_limit"] == f"{part.memory_mib}m"


@names
def test_a_service_has_a_health_check_and_a_volume(service: Service) -> None:
    run = RUN[service.name]
    assert "/health" in run["healthcheck"]["test"][-1]
    assert run["volumes"] == [f"{service.name}-data:/data"]
    assert run["user"] == "10001"


@pytest.mark.parametrize("name", RUN)
def test_nothing_has_rights_or_a_root_that_it_can_write(name: str) -> None:
    run = RUN[name]
    assert run["user"] not in ("", "0", "root")
    assert run["read_only"] is True
    assert run["cap_drop"] == ["ALL"]
    assert run["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("name", RUN)
def test_every_published_port_is_on_the_loopback_and_no_secret_in_an_environment(name: str) -> None:
    for port in RUN[name].get("ports", ()):
        assert port.startswith("127.0.0.1:")
    for variable in RUN[name].get("environment", {}):
        assert "PASSWORD" not in variable or variable.endswith("_FILE")
    assert "BERTH_POSTGRES" not in RUN[name].get("environment", {})


def test_every_variable_of_the_compose_file_is_in_dot_env_and_the_other_way_round() -> None:
    used = set(re.findall(r"\$\{(\w+)\}", (ROOT / "docker-compose.yml").read_text()))
    lines = (ROOT / ".env").read_text().splitlines()
    known = {line.partition("=")[0] for line in lines if line and line[0] != "#"}
    assert known - {"COMPOSE_PROJECT_NAME"} == used


def test_the_secrets_of_compose_are_made_once_in_a_closed_folder(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    assert compose_secrets.make(folder)
    password = (folder / compose_secrets.PASSWORD).read_text()
    assert password in (folder / compose_secrets.DSN).read_text()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not compose_secrets.make(folder)
    assert (folder / compose_secrets.PASSWORD).read_text() == password
    files = {Path(each["file"]).name for each in COMPOSE["secrets"].values()}
    assert files == {path.name for path in folder.iterdir()}
