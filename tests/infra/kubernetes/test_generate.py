"""The manifests of Berth in a cluster are built by kustomize, and a real API server takes them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from infra.kubernetes.cluster import KubernetesCluster
from infra.kubernetes.control_plane import ADMIN, MANIFESTS
from infra.kubernetes.generate import BASE
from infra.kubernetes.workloads import deployed
from tests.real_clusters import kubernetes_control_plane

pytestmark = [pytest.mark.process, pytest.mark.parts]
DEPLOY = BASE.parent
STRIMZI = {"kafkas": "Kafka", "kafkanodepools": "KafkaNodePool", "kafkausers": "KafkaUser"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[KubernetesCluster]:
    with kubernetes_control_plane() as running:
        running.apply(yaml.safe_dump_all(map(definition, STRIMZI.items())))
        yield running


def definition(names: tuple[str, str]) -> dict[str, Any]:
    """Return a kind of Strimzi, of which any content is taken: its operator is not here."""
    plural, kind = names
    version = {
        "name": "v1beta2",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.kafka.strimzi.io"},
        "spec": {
            "group": "kafka.strimzi.io",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "singular": kind.lower()},
            "versions": [version],
        },
    }


def kubectl(cluster: KubernetesCluster, *words: str, given: str = "") -> str:
    config = str(cluster.kubeconfig(ADMIN))
    program = [str(cluster.programs / "kubectl"), "--kubeconfig", config]
    done = subprocess.run(
        [*program, *words], input=given, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("overlay", ["base", "strimzi"])
def test_the_api_takes_all_objects_with_no_unknown_field(
    cluster: KubernetesCluster, overlay: str
) -> None:
    text = kubectl(cluster, "kustomize", str(DEPLOY / overlay))
    # The template of a Job never changes: the page has an operator delete those of before.
    kubectl(cluster, "delete", "jobs", "--all", "--namespace", "berth", "--ignore-not-found")
    applied = kubectl(
        cluster,
        "apply",
        "--server-side",
        "--force-conflicts",
        "--validate=strict",
        "-f",
        "-",
        given=text,
    )
    objects = [one for one in yaml.safe_load_all(text) if one]
    assert applied.count("serverside-applied") == len(objects)
    again = kubectl(
        cluster,
        "apply",
        "--server-side",
        "--dry-run=server",
        "--validate=strict",
        "-f",
        "-",
        given=text,
    )
    assert again.count("serverside-applied") == len(objects)


def test_pods_of_all_services_are_restricted_as_the_standard_for_pods_requires(
    cluster: KubernetesCluster,
) -> None:
    text = kubectl(cluster, "kustomize", str(DEPLOY / "base"))
    cluster.apply((MANIFESTS / "executor.yaml").read_text())
    enforce = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    cluster.patch("/api/v1/namespaces/berth", enforce)
    sets = {
        one["metadata"]["name"]: one
        for one in yaml.safe_load_all(text)
        if one["kind"] in ("StatefulSet", "Job")
    }
    for name, one in sets.items():
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
        spec = dict(one["spec"]["template"]["spec"])
        volumes = [*spec["volumes"], {"name": "data", "emptyDir": {}}]
        pod["spec"] = {**spec, "volumes": volumes}
        cluster.request(
            "POST", "/api/v1/namespaces/berth/pods?dryRun=All&fieldValidation=Strict", pod
        )
    assert {service.name for service in deployed()} < sets.keys()


def test_the_overlay_of_strimzi_has_its_addresses_and_authority(cluster: KubernetesCluster) -> None:
    objects = list(yaml.safe_load_all(kubectl(cluster, "kustomize", str(DEPLOY / "strimzi"))))
    workloads = [one for one in objects if one["kind"] in ("StatefulSet", "Job")]
    for one in workloads:
        volumes = one["spec"]["template"]["spec"]["volumes"]
        if "kafka" in str(one["spec"]["template"]["spec"]["containers"][0]["env"]).lower():
            authority = volumes[0]["projected"]["sources"][0]["secret"]["name"]
            assert authority == "berth-kafka-cluster-ca-cert", one["metadata"]["name"]
    [settings] = [one for one in objects if one["kind"] == "ConfigMap"]
    assert settings["data"]["KAFKA"] == "berth-kafka-kafka-bootstrap:9092"
    [topics] = [one for one in workloads if one["metadata"]["name"] == "topics"]
    env = topics["spec"]["template"]["spec"]["containers"][0]["env"]
    given = {variable["name"] for variable in env}
    assert {"BERTH_KAFKA_CERTIFICATE", "BERTH_KAFKA_SECRETS"} < given
