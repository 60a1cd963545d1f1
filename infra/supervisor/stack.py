"""The one list of parts, steps and services, read by supervisor, compose, Tilt and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from infra.security import kafka_users
from infra.security.rights import ADMIN
from infra.supervisor.site import Guarded, Site

COMMON = (
    "kafka",
    "partitions",
    "data",
    "archive",
    "otlp",
    "otlp_ca",
    "metrics_port",
    "instance",
    "idempotent",
)
"""Settings of every service, described in `shared/process/settings.py`."""

PORTS = {"metrics": "BERTH_METRICS_PORT", "http": "BERTH_PORT"}
"""Variables of a service's ports."""

NODES = Path(__file__).parents[1] / "nodes"
"""Inventories of the executors: the nodes each serves."""


@dataclass(frozen=True, slots=True)
class ThirdParty:
    """A third-party process."""

    name: str
    memory_mib: int


@dataclass(frozen=True, slots=True)
class SetupStep:
    """A one-shot program that must succeed before its dependents start."""

    name: str
    arguments: tuple[str, ...]
    takes: tuple[str, ...]
    needs: tuple[str, ...]
    is_root: bool = False
    """Whether it sets up the broker: with the own broker's certificate, else as `admin`."""


@dataclass(frozen=True, slots=True)
class Service:
    """A long-running process; `ports` are those beside the metrics port."""

    name: str
    module: str
    memory_mib: int
    needs: tuple[str, ...] = ("topics",)
    takes: tuple[str, ...] = COMMON
    ports: tuple[str, ...] = ()
    inventory: str = ""
    is_public: bool = False
    """Whether it listens at the address of the stack; the others are on the loopback."""
    decides: bool = False
    """Whether it has a ledger. On the embedded broker, which needs 6 s to form a group, its lanes
    are assigned by a setting; on Kafka by the consumer group."""

    @property
    def arguments(self) -> tuple[str, ...]:
        return "-m", self.module

    @property
    def user(self) -> str:
        """Its Kafka user, with the rights in `infra.security.acls`."""
        return self.module.rpartition(".")[2]

    @property
    def all_ports(self) -> tuple[str, ...]:
        return "metrics", *self.ports


PARTS = (
    ThirdParty("broker", 1024),
    ThirdParty("postgres", 512),
    ThirdParty("collector", 256),
    ThirdParty("jaeger", 512),
    ThirdParty("prometheus", 512),
    ThirdParty("grafana", 512),
)

TABLES = ("postgres", "postgres_projector", "postgres_gateway", "postgres_notifier")

STEPS = (
    SetupStep(
        "topics",
        ("-m", "infra.broker.topics"),
        ("kafka", "partitions", "durable", "archive"),
        ("broker",),
        True,
    ),
    SetupStep("migrate", ("-m", "shared.projections.migrate"), TABLES, ("postgres",)),
)

WITH_POSTGRES = (*COMMON, "postgres")
WITH_SECRETS = (*COMMON, "secret_keys", "bundles")
"""Settings of the services that take secrets and bundles from tenants and give them to nodes."""
AFTER_TABLES = ("topics", "migrate")

AGENT_EXECUTOR = "executor-agents"
"""The service that agents connect to."""
SERVICES = (
    Service("access", "services.access", 256, decides=True),
    Service("admission", "services.admission", 512, decides=True),
    Service("priority", "services.priority", 512, decides=True),
    Service("placement", "services.placement", 768, decides=True),
    Service("failslow", "services.failslow", 384, decides=True),
    Service("throttle", "services.throttle", 384, ports=("http",), decides=True),
    Service("executor-virtual", "services.executor", 384, inventory="virtual.json"),
    Service(
        AGENT_EXECUTOR,
        "services.executor",
        384,
        takes=WITH_SECRETS,
        ports=("http",),
        is_public=True,
    ),
    Service("publisher", "services.publisher", 256),
    Service("projector", "services.projector", 384, AFTER_TABLES, (*WITH_POSTGRES, "job_logs")),
    Service(
        "notifier",
        "services.notifier",
        256,
        AFTER_TABLES,
        (*WITH_POSTGRES, "secret_keys", "public_url"),
    ),
    Service(
        "gateway",
        "services.gateway",
        384,
        AFTER_TABLES,
        (*WITH_SECRETS, "postgres", "job_logs"),
        ("http",),
        is_public=True,
    ),
)

SLURM_EXECUTOR = Service("executor-slurm", "services.executor", 256)
KUBERNETES_EXECUTOR = Service("executor-kubernetes", "services.executor", 256)
RAY_EXECUTOR = Service("executor-ray", "services.executor", 256)
SLURM_POOL, KUBERNETES_POOL = "BERTH_SLURM_POOL", "BERTH_KUBERNETES_POOL"
RAY_POOL = "BERTH_RAY_POOL"
ENGINE_EXECUTORS = {
    SLURM_POOL: SLURM_EXECUTOR,
    KUBERNETES_POOL: KUBERNETES_EXECUTOR,
    RAY_POOL: RAY_EXECUTOR,
}
"""Beside the others where the environment of `berth up` has the variable: a pool of an engine."""
EXECUTOR = "executor"
AGENT = "berth-agent"
"""The node beside the services: no service, as it has neither a ledger nor a metrics port."""
BY_NAME = {service.name: service for service in SERVICES}


def copies(count: int, services: Sequence[Service] = SERVICES) -> tuple[Service, ...]:
    """Return `count` copies of each service except executors with an inventory, which own nodes.

    Copies of a decider share its lanes as members of a consumer group. The embedded broker assigns
    lanes by name: there one copy works and the others stand by.
    """
    more = (
        replace(service, name=f"{service.name}-{number}")
        for number in range(2, count + 1)
        for service in services
        if not service.inventory
    )
    return (*services, *more)


def services_in(environ: Mapping[str, str]) -> tuple[Service, ...]:
    """Return the services of a stack that is brought up with these variables."""
    beside = (one for variable, one in ENGINE_EXECUTORS.items() if environ.get(variable))
    return (*SERVICES, *beside)


def environment(service: Service, site: Site, ports: Mapping[str, int]) -> dict[str, str]:
    """Return the environment variables of a service."""
    values = _values(site)
    values |= {"instance": f"{service.name}-0", "data": str(site.data / service.name)}
    values["postgres"] = values.get(f"postgres_{service.user}", "")
    own = {PORTS[port]: str(ports[port]) for port in service.all_ports}
    if site.host and service.is_public:
        own["BERTH_HOST"] = site.host
    if site.tls is not None and "http" in service.ports:
        own |= {"BERTH_TLS_CERT": str(site.tls.cert), "BERTH_TLS_KEY": str(site.tls.key)}
        own |= {"BERTH_TLS_CA": str(site.tls.ca)} if service.user == "gateway" else {}
    taken = {f"BERTH_{name.upper()}": values[name] for name in service.takes if name in values}
    if service.decides and not site.idempotent:
        lanes = 1 if service.name == "access" else site.partitions
        own["BERTH_LANES"] = ",".join(str(lane) for lane in range(lanes))
    if site.guarded is not None:
        own |= _credentials(service.user, site.guarded)
    if service.user == EXECUTOR:
        own["BERTH_EXECUTOR_ID"] = service.name
    if service.inventory:
        own["BERTH_NODES"] = str(NODES / service.inventory)
    return taken | own


def step_environment(step: SetupStep, site: Site) -> dict[str, str]:
    """Return the environment variables of a step."""
    values = _values(site)
    variables = {f"BERTH_{name.upper()}": values[name] for name in step.takes if name in values}
    if site.guarded is None or not step.is_root:
        return variables
    if site.guarded.certificate is None:
        return variables | _credentials(ADMIN, site.guarded)
    return variables | _as_root(site.guarded, site.guarded.certificate)


def _credentials(user: str, guarded: Guarded) -> dict[str, str]:
    return {
        "BERTH_KAFKA_USER": user,
        "BERTH_KAFKA_PASSWORD_FILE": str(kafka_users.path_of(guarded.secrets, user)),
        "BERTH_KAFKA_CA": str(guarded.ca),
    }


def _as_root(guarded: Guarded, certificate: Path) -> dict[str, str]:
    return {
        "BERTH_KAFKA": guarded.internal,
        "BERTH_KAFKA_CA": str(guarded.ca),
        "BERTH_KAFKA_CERTIFICATE": str(certificate),
        "BERTH_KAFKA_SECRETS": str(guarded.secrets),
    }


def _values(site: Site) -> dict[str, str]:
    is_https = site.otlp.startswith("https:")
    trust = {"otlp_ca": str(site.tls.ca)} if site.tls is not None and is_https else {}
    optional = {
        "archive": site.archive,
        "secret_keys": site.secret_keys,
        "bundles": site.bundles,
        "job_logs": site.job_logs,
    }
    return (
        trust
        | {name: value for name, value in optional.items() if value}
        | {
            "kafka": site.kafka,
            "public_url": site.public_url,
            "postgres": site.postgres,
            "postgres_projector": site.postgres_projector,
            "postgres_gateway": site.postgres_gateway,
            "postgres_notifier": site.postgres_notifier,
            "otlp": site.otlp,
            "partitions": str(site.partitions),
            "idempotent": str(int(site.idempotent)),
            "durable": str(int(site.durable)),
        }
    )
