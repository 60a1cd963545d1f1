"""The services of Berth as workloads of Kubernetes, from the compose file and the stack's list.

A test compares these two with each other, so a service, a setting or a secret that is new in one of
them is new here. What is external has an address in the ConfigMap `berth-settings`, whose names are
those of `.env`; secrets are files of the Secret `berth-secrets`, of which a pod has those it needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from infra.security import kafka_users
from infra.security.rights import ADMIN
from infra.supervisor.stack import KUBERNETES_EXECUTOR, SERVICES, STEPS, Service, SetupStep

Manifest = dict[str, Any]
Row = Mapping[str, Any]
NAMESPACE = "berth"
SETTINGS, SECRETS, KAFKA_CA = "berth-settings", "berth-secrets", "berth-kafka-ca"
IMAGE = "berth"
SECRETS_PATH = "/etc/berth/secrets"
"""Below /run/secrets Kubernetes mounts the token of a service account."""
COMPOSE_SECRETS = Path("/run/secrets")
API_CA = "api_ca"
"""Authority of the API's certificate, which nodes take: here Kafka has another one (`ca_crt`)."""
USER = 10001
"""User and group of the image."""
METRICS_PORT, HTTP_PORT = 9100, 8080
ACCOUNT, EXECUTOR_ACCOUNT = "berth", "berth-executor"
"""Service accounts: without rights, and with those of `manifests/executor.yaml`."""
PART_OF, NAME = "app.kubernetes.io/part-of", "app.kubernetes.io/name"
OF_STACK = {PART_OF: "berth"}
START_S, PERIOD_S = 600, 10
SHARED = {"bundles": "/bundles", "job-logs": "/job-logs"}
"""Volumes that several services have."""
OPTIONAL = {"/run/upstreams": "upstreams", "/run/archive": "archive"}
"""Volumes of Secrets that may be missing, by path: `berth-upstreams` has the API keys of LLM
upstreams, `berth-archive` the files that the address of an archive names."""
FROM_SETTINGS = {
    "BERTH_KAFKA": "KAFKA",
    "BERTH_OTLP": "OTLP",
    "BERTH_NODE_EXECUTORS": "NODE_EXECUTORS",
    "BERTH_PUBLIC_URL": "PUBLIC_URL",
}
"""Settings whose value in the compose file is an address between its containers."""
DEFAULTS = {
    "KAFKA": "kafka.example:9092",
    "OTLP": "",
    "NODE_EXECUTORS": "https://executor-agents:8080",
    "PUBLIC_URL": "https://gateway:8080",
    "KUBERNETES_POOL": "cloud",
    "KUBERNETES_IMAGE": "",
    "KUBERNETES_PODS": "true",
}
OF_EXECUTOR = ("KUBERNETES_POOL", "KUBERNETES_IMAGE", "KUBERNETES_PODS")
VARIABLE = re.compile(r"\$\{(\w+)\}")


def deployed() -> tuple[Service, ...]:
    """Return the services of a cluster: those of the stack without virtual nodes."""
    return (*(service for service in SERVICES if not service.inventory), KUBERNETES_EXECUTOR)


def run_of(service: Service, compose: Row) -> Row:
    """Return the service in the compose file, for the executor of Kubernetes one that is alike."""
    services: Row = compose["services"]
    if service.name in services:
        return dict(services[service.name])
    [like] = [one for one in SERVICES if one.inventory and one.user == service.user]
    run = dict(services[like.name])
    environment = {
        name: value for name, value in run["environment"].items() if name != "BERTH_NODES"
    }
    environment["BERTH_EXECUTOR_ID"] = service.name
    environment |= {f"BERTH_{name}": f"${{{name}}}" for name in OF_EXECUTOR}
    return {**run, "mem_limit": f"{service.memory_mib}m", "environment": environment}


def stateful_set(service: Service, compose: Row) -> Manifest:
    """Return the workload of a service: one pod, with the name that its instance has."""
    run = run_of(service, compose)
    container = _container(service.name, run, service.all_ports)
    probe = {"httpGet": {"path": "/health", "port": "metrics"}, "periodSeconds": PERIOD_S}
    container |= {
        "startupProbe": {**probe, "timeoutSeconds": 5, "failureThreshold": START_S // PERIOD_S},
        "readinessProbe": {**probe, "timeoutSeconds": 5},
    }
    data = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    }
    pod = _pod(service.name, run, container)
    if service is KUBERNETES_EXECUTOR:
        pod["spec"] |= {
            "serviceAccountName": EXECUTOR_ACCOUNT,
            "automountServiceAccountToken": True,
        }
    return {
        **_head("apps/v1", "StatefulSet", service.name),
        "spec": {
            "serviceName": service.name,
            "replicas": 1,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels_of(service.name)},
            "template": pod,
            "volumeClaimTemplates": [data],
        },
    }


def job(step: SetupStep, compose: Row) -> Manifest:
    """Return the job of a step, which may be repeated; at an external Kafka it is `admin`."""
    run = dict(compose["services"][step.name])
    if step.is_root:
        environment = dict(run["environment"])
        del environment["BERTH_KAFKA_CERTIFICATE"], environment["BERTH_KAFKA_SECRETS"]
        environment["BERTH_KAFKA_USER"] = ADMIN
        password = kafka_users.path_of(COMPOSE_SECRETS, ADMIN)
        environment["BERTH_KAFKA_PASSWORD_FILE"] = str(password)
        run |= {"environment": environment, "secrets": ["ca_crt", password.name]}
    pod = _pod(step.name, run, _container(step.name, run, ()))
    pod["spec"] |= {"restartPolicy": "OnFailure"}
    return {**_head("batch/v1", "Job", step.name), "spec": {"backoffLimit": 100, "template": pod}}


def service_object(service: Service) -> Manifest:
    """Return the name of a service in the cluster; one of HTTP has an address of its own."""
    ports = [
        {"name": name, "port": port_of(name), "targetPort": name} for name in service.all_ports
    ]
    spec: Manifest = {"selector": labels_of(service.name), "ports": ports}
    if "http" not in service.ports:
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    return {**_head("v1", "Service", service.name), "spec": spec}


def disruption_budget(service: Service) -> Manifest:
    """Return the budget by which a drain of nodes takes one pod of a service at a time."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": labels_of(service.name)}}
    return {**_head("policy/v1", "PodDisruptionBudget", service.name), "spec": spec}


def settings(env: Mapping[str, str], compose: Row) -> Manifest:
    """Return the ConfigMap: what services take from `.env`, and what is external here."""
    runs = [run_of(service, compose) for service in deployed()]
    runs += [compose["services"][step.name] for step in STEPS]
    named = ((key, str(value)) for run in runs for key, value in run["environment"].items())
    values = (VARIABLE.fullmatch(value) for key, value in named if key not in FROM_SETTINGS)
    used = {match[1] for match in values if match}
    data = {name: env[name] for name in env if name in used} | DEFAULTS
    return {**_head("v1", "ConfigMap", SETTINGS), "data": data}


def _container(name: str, run: Row, ports: Iterable[str]) -> Manifest:
    megabytes = run["mem_limit"].removesuffix("m")
    container: Manifest = {
        "name": name,
        "image": IMAGE,
        "args": [*run.get("entrypoint", ()), *run["command"]],
        "env": [_variable(key, str(value)) for key, value in run["environment"].items()],
        "resources": {
            "requests": {"cpu": "100m", "memory": f"{megabytes}Mi"},
            "limits": {"memory": f"{megabytes}Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": name, "mountPath": path, **more} for name, path, more in _mounts(run)
        ],
    }
    if ports := list(ports):
        container["ports"] = [{"name": port, "containerPort": port_of(port)} for port in ports]
    return container


def _variable(name: str, value: str) -> Manifest:
    """Return a variable: a setting of the ConfigMap, the pod's own name, or a value."""
    variable = VARIABLE.fullmatch(value)
    key = FROM_SETTINGS.get(name, variable[1] if variable else "")
    if name == "BERTH_METRICS_OF":
        value = ",".join(f"{one.name}={one.name}:{METRICS_PORT}" for one in deployed())
    if name == "BERTH_TLS_CA":
        value = f"{SECRETS_PATH}/{API_CA}"
    if name == "BERTH_INSTANCE":
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    if key:
        source = {"configMapKeyRef": {"name": SETTINGS, "key": key}}
        return {"name": name, "valueFrom": source}
    return {"name": name, "value": value.replace(str(COMPOSE_SECRETS), SECRETS_PATH)}


def _mounts(run: Row) -> list[tuple[str, str, Manifest]]:
    """Return name, path and options of the volumes; an archive is an address of S3 here."""
    mounts: list[tuple[str, str, Manifest]] = [
        ("secrets", SECRETS_PATH, {"readOnly": True}),
        ("tmp", "/tmp", {}),
    ]
    for volume in run.get("volumes", ()):
        source, path, *options = volume.split(":")
        more: Manifest = {"readOnly": True} if options == ["ro"] else {}
        if path == "/data" or source in SHARED:
            mounts.append((source if source in SHARED else "data", path, more))
        if path in OPTIONAL:
            mounts.append((OPTIONAL[path], path, more))
    return mounts


def _pod(name: str, run: Row, container: Manifest) -> Manifest:
    volumes: list[Manifest] = [
        {"name": "secrets", "projected": {"defaultMode": 0o440, "sources": _sources(run)}},
        {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
    ]
    for volume, _, _ in _mounts(run):
        if volume in SHARED:
            volumes.append({"name": volume, "persistentVolumeClaim": {"claimName": volume}})
        if volume in OPTIONAL.values():
            secret = {"secretName": f"berth-{volume}", "optional": True}
            volumes.append({"name": volume, "secret": secret})
    spec = {
        "serviceAccountName": ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": volumes,
    }
    return {"metadata": {"labels": labels_of(name)}, "spec": spec}


def _sources(run: Row) -> list[Manifest]:
    """Return the sources of a pod's secrets: those it needs, and the authorities it checks by."""
    names = [name for name in run["secrets"] if name != "ca_crt"]
    if any(name.startswith("postgres_dsn") for name in names):
        names.append("postgres_ca")
    if "BERTH_TLS_CA" in run["environment"]:
        names.append(API_CA)
    items = [{"key": name, "path": name} for name in names]
    authority = {"name": KAFKA_CA, "items": [{"key": "ca.crt", "path": "ca_crt"}]}
    return [{"secret": authority}, {"secret": {"name": SECRETS, "items": items}}]


def labels_of(name: str) -> dict[str, str]:
    return {**OF_STACK, NAME: name}


def port_of(name: str) -> int:
    return METRICS_PORT if name == "metrics" else HTTP_PORT


def _head(version: str, kind: str, name: str) -> Manifest:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels_of(name)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}
