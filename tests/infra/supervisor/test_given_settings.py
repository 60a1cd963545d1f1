"""The settings of services that `berth up` passes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.supervisor.given_settings import (
    GIVEN,
    OF_EVERY_SERVICE,
    PATHS,
    given_settings,
    given_step_settings,
)
from infra.supervisor.stack import SERVICES
from services.access.settings import AccessSettings
from services.executor.settings import ExecutorSettings
from services.failslow.settings import FailSlowSettings
from services.gateway.settings import GatewaySettings
from services.notifier.settings import NotifierSettings
from services.priority.settings import PrioritySettings
from services.projector.settings import ProjectorSettings
from services.publisher.settings import PublisherSettings
from services.throttle.settings import ThrottleSettings
from shared.http.server_settings import ServerSettings
from shared.process.settings import Settings

CLASSES: dict[str, type[Settings]] = {
    "access": AccessSettings,
    "admission": Settings,
    "priority": PrioritySettings,
    "placement": Settings,
    "failslow": FailSlowSettings,
    "throttle": ThrottleSettings,
    "executor": ExecutorSettings,
    "publisher": PublisherSettings,
    "projector": ProjectorSettings,
    "notifier": NotifierSettings,
    "gateway": GatewaySettings,
}
SET_BY_THE_STACK = {
    "postgres",
    "schema_name",
    "metrics_of",
    "tls_ca",
    "node_executors",
    "recorded",
    "recorded_at",
    "executor_id",
    "nodes",
}
"""Settings that a stack sets itself, beside the settings of every service and of every server."""


def own_settings(service: str) -> set[str]:
    common = ServerSettings.model_fields.keys() | Settings.model_fields.keys()
    return CLASSES[service].model_fields.keys() - common


@pytest.mark.parametrize("service", sorted({service.user for service in SERVICES}))
def test_every_setting_of_a_service_is_given_or_set_by_the_stack(service: str) -> None:
    assert own_settings(service) - SET_BY_THE_STACK == GIVEN[service]
    assert CLASSES[service].model_fields.keys() >= OF_EVERY_SERVICE


def test_the_paths_are_those_that_the_classes_call_paths() -> None:
    named = {
        name
        for service, names in GIVEN.items()
        for name in names
        if "Path" in str(CLASSES[service].model_fields[name].annotation)
    }
    assert named == PATHS


def test_a_service_gets_its_own_settings_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {
        "BERTH_SECRETS": "secrets",
        "BERTH_TENANT_RATE": "10",
        "BERTH_OIDC_ISSUER_FILE": "issuer",
        "BERTH_TRACE_SAMPLE": "0.1",
        "BERTH_KEY": "a.b",
        "BERTH_KAFKA": "elsewhere:1",
        "BERTH_PORT": "1",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    sample = {"BERTH_TRACE_SAMPLE": "0.1"}
    assert given_settings("admission", environ) == sample
    secrets = {"BERTH_SECRETS": str(tmp_path / "secrets")}
    assert given_settings("executor", environ) == sample | secrets
    gateway = {"BERTH_TENANT_RATE": "10", "BERTH_OIDC_ISSUER_FILE": str(tmp_path / "issuer")}
    assert given_settings("gateway", environ) == sample | gateway


def test_the_step_that_makes_topics_gets_the_retention_of_prompts() -> None:
    environ = {"BERTH_PROMPTS_KEPT_H": "48", "BERTH_ANSWERS": "a"}
    assert given_step_settings("topics", environ) == {"BERTH_PROMPTS_KEPT_H": "48"}
    assert given_step_settings("migrate", environ) == {}


def test_the_settings_of_an_engine_make_one_executor_alone_one_of_it() -> None:
    slurm = {"BERTH_SLURM_POOL": "slurm", "BERTH_SLURM_FOLDER": "/shared"}
    kubernetes = {"BERTH_KUBERNETES_POOL": "cloud", "BERTH_KUBERNETES_CONFIG": "/etc/config"}
    ray = {"BERTH_RAY_POOL": "ray", "BERTH_RAY_ADDRESS": "http://head:8265"}
    environ = slurm | kubernetes | ray
    assert given_settings("executor", environ) == {}
    assert given_settings("executor", environ, service="executor-slurm") == slurm
    assert given_settings("executor", environ, service="executor-kubernetes") == kubernetes
    assert given_settings("executor", environ, service="executor-ray") == ray
