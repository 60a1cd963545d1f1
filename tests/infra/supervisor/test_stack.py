from __future__ import annotations

import importlib
import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel

from infra.supervisor.site import Site
from infra.supervisor.stack import (
    BY_NAME,
    KUBERNETES_EXECUTOR,
    KUBERNETES_POOL,
    PARTS,
    RAY_EXECUTOR,
    RAY_POOL,
    SERVICES,
    SLURM_EXECUTOR,
    SLURM_POOL,
    STEPS,
    Service,
    environment,
    services_in,
    step_environment,
)
from shared.process.settings import Settings, read_settings

SITE = Site(
    kafka="127.0.0.1:9092",
    postgres="postgresql://berth@/berth?host=/run",
    otlp="http://127.0.0.1:4318",
    data=Path("/data"),
    partitions=4,
    idempotent=False,
    durable=False,
    postgres_projector="postgresql://berth_projector@/berth?host=/run",
    postgres_gateway="postgresql://berth_gateway@/berth?host=/run",
    postgres_notifier="postgresql://berth_notifier@/berth?host=/run",
)
PORTS = {"metrics": 9100, "http": 8080}
names = pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)


def _model(service: Service) -> type[BaseModel]:
    """Return the class of the service's settings: `Settings` if it has none of its own."""
    if not importlib.util.find_spec(f"{service.module}.settings"):
        return Settings
    module = importlib.import_module(f"{service.module}.settings")
    models = [
        member
        for member in vars(module).values()
        if isinstance(member, type)
        and issubclass(member, Settings)
        and member.__module__ == module.__name__
    ]
    return models[0] if models else Settings


@names
def test_a_service_accepts_its_variables(service: Service) -> None:
    settings = read_settings(_model(service), environment(service, SITE, PORTS))
    assert getattr(settings, "instance", "") == f"{service.name}-0"


@names
def test_a_service_can_be_started_as_a_module(service: Service) -> None:
    assert importlib.util.find_spec(f"{service.module}.__main__")


def test_names_are_different_and_what_is_needed_comes_first() -> None:
    known: list[str] = [part.name for part in PARTS]
    for unit in (*STEPS, *SERVICES):
        assert unit.name not in known
        assert set(unit.needs) <= set(known)
        known.append(unit.name)


def test_only_readers_of_tables_get_the_address_of_postgres() -> None:
    variables = {service.name: environment(service, SITE, PORTS) for service in SERVICES}
    assert {name for name, env in variables.items() if "BERTH_POSTGRES" in env} == {
        "projector",
        "notifier",
        "gateway",
    }


def test_each_of_them_enters_postgres_as_its_own_role() -> None:
    for service in SERVICES:
        variables = environment(service, SITE, PORTS).get("BERTH_POSTGRES", "")
        assert variables == getattr(SITE, f"postgres_{service.name}", "")


def test_each_executor_is_a_member_of_its_own_with_its_own_folder() -> None:
    executors = [
        environment(service, SITE, PORTS)
        for service in SERVICES
        if service.module == "services.executor"
    ]
    for name in ("BERTH_INSTANCE", "BERTH_EXECUTOR_ID", "BERTH_DATA"):
        assert len({variables[name] for variables in executors}) == len(executors) == 2


def test_the_executor_of_agents_has_a_port_and_no_inventory() -> None:
    variables = environment(BY_NAME["executor-agents"], SITE, PORTS)
    assert variables["BERTH_PORT"] == str(PORTS["http"]) and "BERTH_NODES" not in variables


def test_a_step_gets_only_its_variables() -> None:
    topics, migrate = (step_environment(step, SITE) for step in STEPS)
    assert topics == {
        "BERTH_KAFKA": "127.0.0.1:9092",
        "BERTH_PARTITIONS": "4",
        "BERTH_DURABLE": "0",
    }
    assert migrate == {
        "BERTH_POSTGRES": SITE.postgres,
        "BERTH_POSTGRES_PROJECTOR": SITE.postgres_projector,
        "BERTH_POSTGRES_GATEWAY": SITE.postgres_gateway,
        "BERTH_POSTGRES_NOTIFIER": SITE.postgres_notifier,
    }


def test_only_the_api_and_the_executor_of_agents_listen_at_the_address_of_the_stack() -> None:
    site = replace(SITE, host="192.0.2.1")
    hosts = {
        service.name: environment(service, site, PORTS).get("BERTH_HOST") for service in SERVICES
    }
    assert {name for name, host in hosts.items() if host == "192.0.2.1"} == {
        "gateway",
        "executor-agents",
    }
    assert all("BERTH_HOST" not in environment(service, SITE, PORTS) for service in SERVICES)


def test_an_executor_of_an_engine_is_there_where_its_pool_is_named() -> None:
    assert services_in({}) == services_in({SLURM_POOL: ""}) == SERVICES
    more = services_in({SLURM_POOL: "slurm"})
    assert more == (*SERVICES, SLURM_EXECUTOR)
    both = services_in({SLURM_POOL: "slurm", KUBERNETES_POOL: "cloud"})
    assert both == (*more, KUBERNETES_EXECUTOR)
    assert services_in({RAY_POOL: "ray"}) == (*SERVICES, RAY_EXECUTOR)
    assert environment(SLURM_EXECUTOR, SITE, PORTS)["BERTH_EXECUTOR_ID"] == "executor-slurm"
