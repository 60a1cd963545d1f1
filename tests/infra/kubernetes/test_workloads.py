"""The manifests of Berth in a cluster say what the compose file and the list of the stack say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.kubernetes.generate import BASE, generated
from infra.kubernetes.workloads import SECRETS_PATH, SETTINGS, deployed
from infra.supervisor.stack import KUBERNETES_EXECUTOR, SERVICES, STEPS

ROOT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
OBJECTS = [one for text in generated().values() for one in yaml.safe_load_all(text)]
NOT_HERE = {"BERTH_NODES", "BERTH_KAFKA_CERTIFICATE", "BERTH_KAFKA_SECRETS"}
"""Settings of virtual nodes, and of a broker whose own certificate is at hand."""
ADDED = {"BERTH_KAFKA_USER", "BERTH_KAFKA_PASSWORD_FILE"}
"""Settings of the step that is `admin` at an external Kafka."""


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in OBJECTS if one["kind"] == kind}


WORKLOADS = of_kind("StatefulSet") | of_kind("Job")
names = pytest.mark.parametrize("name", WORKLOADS)


def pod_of(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = WORKLOADS[name]["spec"]["template"]["spec"]
    return spec


def container_of(name: str) -> dict[str, Any]:
    [container] = pod_of(name)["containers"]
    return dict(container)


@pytest.mark.parametrize("file", generated())
def test_the_files_are_those_that_are_generated(file: str) -> None:
    assert (BASE / file).read_text() == generated()[file], "run python -m infra.kubernetes.generate"


def test_every_service_and_step_of_the_stack_is_there_but_virtual_nodes() -> None:
    real = {service.name for service in SERVICES if not service.inventory}
    assert set(of_kind("StatefulSet")) == real | {KUBERNETES_EXECUTOR.name}
    assert set(of_kind("Job")) == {step.name for step in STEPS}
    for kind in ("Service", "PodDisruptionBudget"):
        assert set(of_kind(kind)) == set(of_kind("StatefulSet"))
    assert set(of_kind("NetworkPolicy")) == {"berth-default", *WORKLOADS}


@names
def test_a_workload_has_command_settings_and_memory_of_the_compose_file(name: str) -> None:
    run = COMPOSE["services"].get(name) or COMPOSE["services"]["executor-virtual"]
    container = container_of(name)
    assert container["args"] == [*run.get("entrypoint", ()), *run["command"]]
    settings = {variable["name"] for variable in container["env"]}
    own = {one for one in settings if one.startswith("BERTH_KUBERNETES_")}
    assert bool(own) == (name == KUBERNETES_EXECUTOR.name)
    added = ADDED if name == "topics" else set()
    assert settings - own - added == set(run["environment"]) - NOT_HERE
    memory = next((s.memory_mib for s in deployed() if s.name == name), 256)
    assert container["resources"]["limits"]["memory"] == f"{memory}Mi"


@names
def test_every_setting_that_is_named_is_in_the_config_map(name: str) -> None:
    data = of_kind("ConfigMap")[SETTINGS]["data"]
    for variable in container_of(name)["env"]:
        reference = variable.get("valueFrom", {}).get("configMapKeyRef")
        assert reference is None or reference["key"] in data
        assert "${" not in variable.get("value", "")


@names
def test_a_pod_gets_the_secrets_it_names_and_no_other(name: str) -> None:
    projected = pod_of(name)["volumes"][0]["projected"]["sources"]
    given = {item["path"] for source in projected for item in source["secret"]["items"]}
    named = set(re.findall(rf"{SECRETS_PATH}/(\w+)", str(container_of(name)["env"])))
    assert given - {"ca_crt", "postgres_ca"} == named - {"ca_crt"}
    has_dsn = any(one.startswith("postgres_dsn") for one in named)
    assert ("postgres_ca" in given) == has_dsn
    known = {*COMPOSE["secrets"], "postgres_ca", "api_ca"}
    assert given <= known


def test_nodes_are_named_the_authority_of_the_api_and_not_that_of_kafka() -> None:
    values = {one["name"]: one.get("value") for one in container_of("gateway")["env"]}
    assert values["BERTH_TLS_CA"] == f"{SECRETS_PATH}/api_ca"
    assert values["BERTH_KAFKA_CA"] == f"{SECRETS_PATH}/ca_crt"


@names
def test_a_pod_has_no_rights_on_its_node_and_a_root_that_it_cannot_write(name: str) -> None:
    pod, container = pod_of(name), container_of(name)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    is_executor = name == KUBERNETES_EXECUTOR.name
    assert pod["automountServiceAccountToken"] is is_executor
    assert pod["serviceAccountName"] == ("berth-executor" if is_executor else "berth")


def test_the_gateways_page_asks_every_service_of_the_cluster() -> None:
    [value] = [
        v["value"] for v in container_of("gateway")["env"] if v["name"] == "BERTH_METRICS_OF"
    ]
    assert value.split(",") == [f"{s.name}={s.name}:9100" for s in deployed()]


@pytest.mark.parametrize("service", deployed(), ids=lambda service: service.name)
def test_a_service_reaches_postgres_only_if_it_reads_it_and_kubernetes_only_as_its_executor(
    service: Any,
) -> None:
    policy = of_kind("NetworkPolicy")[service.name]["spec"]
    ports = {port.get("port") for rule in policy["egress"] for port in rule["ports"]}
    assert (5432 in ports) == ("postgres" in service.takes)
    assert (6443 in ports) == (service is KUBERNETES_EXECUTOR)
    assert (None in ports) == (service.name in ("notifier", "throttle"))
    reachable = {port["port"] for rule in policy["ingress"] for port in rule["ports"]}
    assert reachable == ({9100, 8080} if "http" in service.ports else {9100})
