"""Network policies of Berth in a cluster: nothing but what each service needs, by its settings."""

from __future__ import annotations

from infra.kubernetes.workloads import (
    HTTP_PORT,
    METRICS_PORT,
    NAMESPACE,
    OF_STACK,
    Manifest,
    deployed,
    labels_of,
)
from infra.supervisor.stack import KUBERNETES_EXECUTOR, STEPS, Service, SetupStep

DNS = ({"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53})
KAFKA, POSTGRES, OTLP, HTTPS = (9092, 9093, 9094), (5432,), (4317, 4318), (443,)
API_SERVER = (443, 6443)
SCRAPERS = {"berth/scrapes": "true"}
"""Label of a namespace whose pods may read the metrics."""
ANYWHERE = frozenset({"notifier", "throttle"})
"""Services that send to addresses of tenants: webhooks and upstreams, on any port."""


def default_deny() -> Manifest:
    """Return the policy by which nothing is allowed that no other one allows."""
    return _policy("berth-default", {"matchLabels": OF_STACK}, [], [{"ports": list(DNS)}])


def of_service(service: Service) -> Manifest:
    """Return who may reach a service, and what it may reach."""
    scrapers = [
        {"podSelector": {"matchLabels": labels_of("gateway")}},
        {"namespaceSelector": {"matchLabels": SCRAPERS}},
    ]
    ingress: list[Manifest] = [{"from": scrapers, "ports": _tcp(METRICS_PORT)}]
    if "http" in service.ports:
        ingress.append({"ports": _tcp(HTTP_PORT)})
    ports = [*KAFKA, *OTLP, *HTTPS, *(POSTGRES if "postgres" in service.takes else ())]
    if service is KUBERNETES_EXECUTOR:
        ports += API_SERVER[1:]
    egress: list[Manifest] = [{"ports": _tcp(*ports)}]
    if service.name == "gateway":
        inside = {"podSelector": {"matchLabels": OF_STACK}}
        egress.append({"to": [inside], "ports": _tcp(METRICS_PORT, HTTP_PORT)})
    if service.name in ANYWHERE:
        egress.append({"ports": [{"protocol": "TCP"}]})
    return _policy(service.name, {"matchLabels": labels_of(service.name)}, ingress, egress)


def of_step(step: SetupStep) -> Manifest:
    ports = POSTGRES if "postgres" in step.needs else (*KAFKA, *HTTPS)
    selector = {"matchLabels": labels_of(step.name)}
    return _policy(step.name, selector, [], [{"ports": _tcp(*ports)}])


def policies() -> list[Manifest]:
    return [default_deny(), *map(of_service, deployed()), *map(of_step, STEPS)]


def _tcp(*ports: int) -> list[Manifest]:
    return [{"protocol": "TCP", "port": port} for port in ports]


def _policy(
    name: str, selector: Manifest, ingress: list[Manifest], egress: list[Manifest]
) -> Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": OF_STACK},
        "spec": {
            "podSelector": selector,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": ingress,
            "egress": egress,
        },
    }
