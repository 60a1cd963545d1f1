"""docker-compose.yml says the same as the list of the stack."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth_agent.node.config import load as load_config
from infra.compose import archive, project
from infra.compose import secrets as compose_secrets
from infra.compose.opening import JOIN_TOKEN
from infra.image import node
from infra.supervisor.given_settings import given_step_settings
from infra.supervisor.site import Guarded, Site, Tls
from infra.supervisor.stack import (
    AGENT,
    PARTS,
    SERVICES,
    STEPS,
    Service,
    environment,
    step_environment,
)
from services.throttle.interaction_key import read_interaction_key
from shared.secrets.secret_keys import read_keys

ROOT = Path(__file__).resolve().parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
RUN: dict[str, dict[str, Any]] = COMPOSE["services"]
ENTRY = ["python", "-I", "-S", "infra/image/run.py"]
"""Stops for good what the supervisor stops for good."""
SECRETS = Path("/run/secrets")
SITE = Site(
    "k:1",
    "dsn",
    "http://o",
    Path("/data"),
    16,
    idempotent=True,
    durable=True,
    guarded=Guarded(SECRETS / "ca_crt", SECRETS, SECRETS / "broker_pem", "broker:9094"),
    tls=Tls(SECRETS / "ca_crt", SECRETS / "api_crt", SECRETS / "api_key"),
    bundles="/bundles",
    job_logs="/job-logs",
    secret_keys=str(SECRETS / "secret_keys"),
    archive="/archive",
)
LOAD = "load"
"""Only started by hand."""
PORTS = {"metrics": 9100, "http": 8080}
BETWEEN_CONTAINERS = {
    "BERTH_HOST",
    "BERTH_SPANS_FROM",
    "BERTH_METRICS_HOST",
    "BERTH_METRICS_OF",
    "BERTH_NODE_EXECUTORS",
    "BERTH_TRACE_SAMPLE",
    "BERTH_UPSTREAM_KEYS",
    "BERTH_INTERACTION_KEY",
    "BERTH_JOB_HISTORY_D",
    "BERTH_RECORDS_D",
    "BERTH_WEBHOOK_NETWORKS",
    "BERTH_SMTP_HOST",
    "BERTH_SMTP_PORT",
    "BERTH_SMTP_USER",
    "BERTH_SMTP_PASSWORD",
    "BERTH_MAIL_FROM",
    "BERTH_MAIL_DOMAINS",
}
"""Settings that only processes on different addresses need, or that an operator gives."""
GIVEN = f"${{SECRETS}}/{compose_secrets.ARCHIVE}:{archive.GIVEN}:ro"
"""Credentials and CA of an archive in S3."""
names = pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)


def _settings(variables: dict[str, Any]) -> set[str]:
    """Names of variables; one that is read from a file is the same setting."""
    return {name.removesuffix("_FILE") for name in variables}


def test_compose_runs_the_parts_steps_and_services_of_the_stack() -> None:
    assert set(RUN) == {LOAD, AGENT, *(unit.name for unit in (*PARTS, *STEPS, *SERVICES))}


@names
def test_compose_starts_a_service_as_the_supervisor_does(service: Service) -> None:
    run = RUN[service.name]
    assert run["command"] == ["python", *service.arguments]
    assert run["entrypoint"] == ENTRY and (ROOT / ENTRY[-1]).is_file()
    assert run["restart"] == "unless-stopped"
    assert run["mem_limit"] == f"{service.memory_mib}m"
    assert set(run["depends_on"]) == set(service.needs)


@names
def test_compose_gives_a_service_the_settings_of_the_supervisor(service: Service) -> None:
    settings, own = RUN[service.name]["environment"], environment(service, SITE, PORTS)
    assert _settings(settings) - BETWEEN_CONTAINERS == _settings(own)
    for name in (
        "BERTH_INSTANCE",
        "BERTH_KAFKA_USER",
        "BERTH_KAFKA_PASSWORD_FILE",
        "BERTH_KAFKA_CA",
        "BERTH_TLS_CA",
        "BERTH_TLS_CERT",
        "BERTH_TLS_KEY",
    ):
        assert settings.get(name) == own.get(name)
    assert settings.get("BERTH_EXECUTOR_ID") == own.get("BERTH_EXECUTOR_ID")
    assert Path(settings.get("BERTH_NODES", "")).name == service.inventory


def test_docker_gets_every_folder_that_the_image_copies() -> None:
    lines = (ROOT / "infra" / "image" / "Dockerfile").read_text().splitlines()
    words = [line.split() for line in lines if line.startswith("COPY ") and "--from" not in line]
    copied = {source.split("/")[0] for _, *sources, _ in words for source in sources}
    given = (ROOT / ".dockerignore").read_text().splitlines()
    assert len(copied) > 5 and {f"!{folder}" for folder in copied} <= set(given)


def test_the_node_of_pool_local_runs_the_agent_with_its_state_in_a_volume() -> None:
    run = RUN[AGENT]
    assert run["command"][:2] == ["python", "infra/image/node.py"]
    config = load_config(node.CONFIG, {})
    assert run["mem_limit"] == f"{round(config.mem_gib * 1024) + 256}m"
    assert (config.gpus, config.gpu_type, config.keep_workers) == (2, "slot", False)
    assert str(Path(config.state).parent) in [volume.split(":")[1] for volume in run["volumes"]]
    assert ROOT / run["healthcheck"]["test"][-2] == node.CONFIG


def test_the_agent_may_keep_jobs_apart_and_has_nothing_else_that_they_could_read() -> None:
    """Jobs of several tenants are in its container: its rights are for their users and views."""
    run, config = RUN[AGENT], load_config(node.CONFIG, {})
    assert run["user"] == "0" and config.uid_first and config.private_tmp and config.cgroups
    # Docker's filter permits all that SYS_ADMIN may do, to jobs as well.
    assert config.seccomp
    assert {"SETUID", "SETGID", "SYS_ADMIN"} < set(run["cap_add"])
    assert config.max_pids * config.cpus * 2 < run["pids_limit"]
    assert run["secrets"] == ["ca_crt"] and "environment" not in run
    mounted = dict(volume.split(":")[:2] for volume in run["volumes"])
    assert mounted == {"berth-agent-data": "/data", "./.berth/compose/node": "/node"}
    assert project.NODE.relative_to(ROOT) == Path(".berth/compose/node")
    assert str(node.TOKEN) == f"/node/{JOIN_TOKEN}"
    inside = "./.berth/compose/inside:/inside:ro"
    assert [name for name in RUN if inside in RUN[name].get("volumes", ())] == [LOAD]


def test_the_gateways_page_asks_every_service() -> None:
    settings = RUN["gateway"]["environment"]["BERTH_METRICS_OF"]
    assert settings.split(",") == [f"{service.name}={service.name}:9100" for service in SERVICES]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_compose_runs_a_step_as_the_supervisor_does(step: Any) -> None:
    run = RUN[step.name]
    assert run["command"] == ["python", *step.arguments]
    given = set(given_step_settings(step.name, run["environment"]))
    assert _settings(run["environment"]) - given == set(step_environment(step, SITE))
    assert set(run["depends_on"]) == set(step.needs)


@pytest.mark.parametrize("name", RUN)
def test_a_container_gets_the_secrets_it_needs_and_no_other(name: str) -> None:
    text = f"{RUN[name].get('environment', '')} {RUN[name].get('command', '')}"
    settings = set(re.findall(r"/run/secrets/(\w+)", text))
    given = set(RUN[name].get("secrets", ()))
    dsns = {name for name in given if name.startswith("postgres_dsn")}
    # The step that sets Kafka up gets the whole directory; addresses of Postgres and the
    # collector's configuration name the CA themselves.
    whole = name in ("topics", LOAD)
    assert given - {"ca_crt"} == settings - {"ca_crt"} or whole and settings <= given
    assert ("ca_crt" in given) == bool("ca_crt" in settings or dsns or whole or name == "collector")


def test_no_listener_of_kafka_is_plain_and_access_needs_an_acl() -> None:
    settings = RUN["broker"]["environment"]
    kinds = dict(
        pair.split(":") for pair in settings["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")
    )
    named = {url.split("://")[0] for url in settings["KAFKA_LISTENERS"].split(",")}
    assert kinds.keys() == named
    assert {kinds["CLIENT"], kinds["OUTSIDE"]} == {"SASL_SSL"}
    assert {kinds["INTERNAL"], kinds["CONTROLLER"]} == {"SSL"}
    for name in ("INTERNAL", "CONTROLLER"):
        assert settings[f"KAFKA_LISTENER_NAME_{name}_SSL_CLIENT_AUTH"] == "required"
    assert settings["KAFKA_ALLOW_EVERYONE_IF_NO_ACL_FOUND"] == "false"
    assert settings["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"


def test_postgres_speaks_tls_only_and_asks_for_a_password() -> None:
    rows = (ROOT / "infra" / "pg_hba.conf").read_text().splitlines()
    rules = [line.split() for line in rows if line and not line.startswith("#")]
    assert {rule[0] for rule in rules} == {"local", "hostssl"}
    assert {rule[-1] for rule in rules} == {"scram-sha-256"}


def test_profiles() -> None:
    profiles = {name: set(run["profiles"]) for name, run in RUN.items()}
    assert set().union(*profiles.values()) == {"core", "observability", LOAD}
    seen = {"collector", "jaeger", "prometheus", "grafana"}
    assert {name for name, own in profiles.items() if own == {"observability"}} == seen
    assert {name for name, own in profiles.items() if own == {LOAD}} == {LOAD}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_part_has_its_memory_limit(part: Any) -> None:
    assert RUN[part.name]["mem_limit"] == f"{part.memory_mib}m"


@names
def test_a_service_has_a_health_check_and_a_volume(service: Service) -> None:
    run = RUN[service.name]
    assert "/health" in run["healthcheck"]["test"][-1]
    assert run["volumes"][0] == f"{service.name}-data:/data"
    writers = {"publisher": ["${ARCHIVE_FOLDER}:/archive"]}
    writers["projector"] = ["job-logs:/job-logs", *writers["publisher"]]
    writers["gateway"] = writers["executor-agents"] = ["bundles:/bundles"]
    written = [volume for volume in run["volumes"][1:] if not volume.endswith(":ro")]
    assert written == writers.get(service.name, [])
    assert any(volume.startswith("${ARCHIVE_FOLDER}:/archive") for volume in run["volumes"])
    assert GIVEN in run["volumes"]
    assert run["user"] == "10001"


@pytest.mark.parametrize("name", RUN)
def test_nothing_but_the_agent_has_rights_and_none_a_root_that_it_can_write(name: str) -> None:
    run = RUN[name]
    assert run["read_only"] is True
    assert run["cap_drop"] == ["ALL"]
    assert run["security_opt"][0] == "no-new-privileges:true"
    if name != AGENT:
        assert run["user"] not in ("", "0", "root")
        assert "cap_add" not in run and len(run["security_opt"]) == 1


@pytest.mark.parametrize("name", RUN)
def test_every_published_port_is_on_the_loopback_and_no_secret_in_an_environment(name: str) -> None:
    for port in RUN[name].get("ports", ()):
        assert port.startswith("127.0.0.1:")
    for variable in RUN[name].get("environment", {}):
        assert "PASSWORD" not in variable or variable.endswith(("_FILE", "__FILE"))
    assert "BERTH_POSTGRES" not in RUN[name].get("environment", {})


def test_every_variable_of_the_compose_file_is_in_dot_env_and_the_other_way_round() -> None:
    used = set(re.findall(r"\$\{(\w+)\}", (ROOT / "docker-compose.yml").read_text()))
    lines = (ROOT / ".env").read_text().splitlines()
    known = {line.partition("=")[0] for line in lines if line and line[0] != "#"}
    assert known - {"COMPOSE_PROJECT_NAME", "COMPOSE_PROFILES"} == used


def test_the_secrets_of_compose_are_made_once_in_a_closed_folder(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    compose_secrets.make(folder)
    made = _bytes(folder)
    password = (folder / compose_secrets.PASSWORD).read_text()
    assert password in (folder / compose_secrets.DSN).read_text()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    compose_secrets.make(folder)
    assert _bytes(folder) == made
    files = {secret["file"].removeprefix("${SECRETS}/") for secret in COMPOSE["secrets"].values()}
    assert files <= set(made)
    assert "certificates/ca.key" not in files
    compose_secrets.forget(folder)
    assert not _bytes(folder)


def test_the_throttle_alone_reads_the_keys_of_upstreams_which_are_none_at_first(
    tmp_path: Path,
) -> None:
    mount = f"${{SECRETS}}/{compose_secrets.UPSTREAMS}:/run/upstreams:ro"
    assert [name for name, run in RUN.items() if mount in run.get("volumes", ())] == ["throttle"]
    assert RUN["throttle"]["environment"]["BERTH_UPSTREAM_KEYS"] == "/run/upstreams"
    compose_secrets.make(tmp_path)
    folder = tmp_path / compose_secrets.UPSTREAMS
    assert list(folder.iterdir()) == []
    (folder / "hosted").write_text("secret")
    compose_secrets.forget(tmp_path)
    assert (folder / "hosted").read_text() == "secret"


def test_what_reads_ledgers_has_the_files_of_an_archive_in_s3(tmp_path: Path) -> None:
    having = {name for name, run in RUN.items() if GIVEN in run.get("volumes", ())}
    assert having == {"topics", LOAD, *(service.name for service in SERVICES)}
    compose_secrets.make(tmp_path)
    assert list((tmp_path / compose_secrets.ARCHIVE).iterdir()) == []


def test_ids_of_interactions_are_signed_with_a_key_of_the_installation(tmp_path: Path) -> None:
    path = RUN["throttle"]["environment"]["BERTH_INTERACTION_KEY"]
    assert path == f"/run/secrets/{compose_secrets.INTERACTIONS}"
    compose_secrets.make(tmp_path)
    assert len(read_interaction_key(tmp_path / compose_secrets.INTERACTIONS, tmp_path)) >= 32


def test_gateway_notifier_and_executor_of_agents_alone_have_the_keys_of_secrets(
    tmp_path: Path,
) -> None:
    path = f"/run/secrets/{compose_secrets.SECRET_KEYS}"
    holders = {name for name, run in RUN.items() if compose_secrets.SECRET_KEYS in _secrets(run)}
    assert holders == {"gateway", "notifier", "executor-agents"}
    assert {RUN[name]["environment"]["BERTH_SECRET_KEYS"] for name in holders} == {path}
    compose_secrets.make(tmp_path)
    before = read_keys(tmp_path / compose_secrets.SECRET_KEYS)
    compose_secrets.make(tmp_path)
    assert read_keys(tmp_path / compose_secrets.SECRET_KEYS) == before


def _secrets(run: dict[str, Any]) -> list[str]:
    return list(run.get("secrets", ()))


def test_an_address_of_before_tls_keeps_its_password(tmp_path: Path) -> None:
    path = tmp_path / compose_secrets.DSN
    path.write_text("postgresql://berth:known@postgres:5432/berth")
    (tmp_path / compose_secrets.PASSWORD).write_text("known")
    compose_secrets.make(tmp_path)
    settings = compose_secrets.outside(path.read_text(), 25432, Path("/here/ca.crt"))
    assert settings == (
        "postgresql://berth:known@127.0.0.1:25432/berth"
        "?sslmode=verify-full&sslrootcert=/here/ca.crt"
    )


def _bytes(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock" and path.stat().st_size
    }
