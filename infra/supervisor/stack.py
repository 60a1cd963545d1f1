"""The one list of what Berth consists of; supervisor, compose, Tilt and tests all read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from infra.security import kafka_users

COMMON = (
    "kafka",
    "partitions",
    "data",
    "otlp",
    "otlp_ca",
    "metrics_port",
    "instance",
    "idempotent",
    "window_ms",
)
"""Settings that every service takes; `shared/settings.py` says what they mean."""

PORTS = {"metrics": "BERTH_METRICS_PORT", "http": "BERTH_PORT"}
"""The variable that tells a service each of its ports."""

NODES = Path(__file__).parents[1] / "nodes"
"""Inventories of the executors: which nodes each of them serves."""


@dataclass(frozen=True, slots=True)
class Part:
    """Something that we run and did not write."""

    name: str
    memory_mib: int


@dataclass(frozen=True, slots=True)
class Step:
    """A program that ends, and has to end well before what needs it starts."""

    name: str
    arguments: tuple[str, ...]
    takes: tuple[str, ...]
    needs: tuple[str, ...]
    is_root: bool = False
    """It sets up the broker, as the broker itself."""


@dataclass(frozen=True, slots=True)
class Service:
    """A process that runs for ever; `ports` are those beside the one for metrics."""

    name: str
    module: str
    memory_mib: int
    needs: tuple[str, ...] = ("topics",)
    takes: tuple[str, ...] = COMMON
    ports: tuple[str, ...] = ()
    inventory: str = ""
    decides: bool = False
    """It has a ledger. The embedded broker needs 6 s to form a group, so there it is told its
    lanes; a real broker spreads them."""

    @property
    def arguments(self) -> tuple[str, ...]:
        return "-m", self.module

    @property
    def user(self) -> str:
        """Who it is to Kafka; `infra.security.acls` says what that user may do."""
        return self.module.rpartition(".")[2]

    @property
    def all_ports(self) -> tuple[str, ...]:
        return "metrics", *self.ports


@dataclass(frozen=True, slots=True)
class Tls:
    """What proves this installation's APIs, as PEM files, and whom its clients trust."""

    ca: Path
    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Guarded:
    """A Kafka that asks who one is: files and the address for its set-up."""

    ca: Path
    secrets: Path
    certificate: Path
    internal: str


@dataclass(frozen=True, slots=True)
class Site:
    """Where this installation's parts are; what of it a program is told, its `takes` says."""

    kafka: str
    postgres: str
    otlp: str
    data: Path
    work: Path
    partitions: int
    idempotent: bool
    durable: bool
    window_ms: int = 20
    guarded: Guarded | None = None
    tls: Tls | None = None
    """None: the APIs speak plain HTTP, on the loopback."""
    postgres_projector: str = ""
    postgres_gateway: str = ""
    """Addresses for the roles that services have there; `postgres` is the installation's own."""


PARTS = (
    Part("broker", 1024),
    Part("postgres", 512),
    Part("collector", 256),
    Part("jaeger", 512),
    Part("prometheus", 512),
    Part("grafana", 512),
)

TABLES = ("postgres", "postgres_projector", "postgres_gateway")

STEPS = (
    Step(
        "topics",
        ("-m", "infra.broker.topics"),
        ("kafka", "partitions", "durable"),
        ("broker",),
        True,
    ),
    Step("migrate", ("-m", "shared.projections.migrate"), TABLES, ("postgres",)),
)

WITH_POSTGRES = (*COMMON, "postgres")
AFTER_TABLES = ("topics", "migrate")

SERVICES = (
    Service("access", "services.access", 256, decides=True),
    Service("admission", "services.admission", 512, decides=True),
    Service("priority", "services.priority", 512, decides=True),
    Service("placement", "services.placement", 768, decides=True),
    Service("failslow", "services.failslow", 384, decides=True),
    Service("throttle", "services.throttle", 384, ports=("http",), decides=True),
    Service("executor-virtual", "services.executor", 384, inventory="virtual.json"),
    Service(
        "executor-local", "services.executor", 384, takes=(*COMMON, "work"), inventory="local.json"
    ),
    Service("publisher", "services.publisher", 256),
    Service("projector", "services.projector", 384, AFTER_TABLES, WITH_POSTGRES),
    Service("gateway", "services.gateway", 384, AFTER_TABLES, WITH_POSTGRES, ("http",)),
)

BY_NAME = {service.name: service for service in SERVICES}


def copies(count: int, services: Sequence[Service] = SERVICES) -> tuple[Service, ...]:
    """These services, `count` times each but the executors, whose nodes are their own.

    Deciders share their lanes out and take over each other's, as members of one group: on the
    embedded broker, which hands lanes out by name, there is one copy. The others stand by.
    """
    more = (
        replace(service, name=f"{service.name}-{number}")
        for number in range(2, count + 1)
        for service in services
        if not service.inventory
    )
    return (*services, *more)


def environment(service: Service, site: Site, ports: Mapping[str, int]) -> dict[str, str]:
    """The variables of one service: its own, and no other's."""
    known = _values(site) | {"instance": f"{service.name}-0", "data": str(site.data / service.name)}
    known["postgres"] = known.get(f"postgres_{service.user}", "")
    own = {PORTS[port]: str(ports[port]) for port in service.all_ports}
    if site.tls is not None and "http" in service.ports:
        own |= {"BERTH_TLS_CERT": str(site.tls.cert), "BERTH_TLS_KEY": str(site.tls.key)}
    taken = {f"BERTH_{name.upper()}": known[name] for name in service.takes if name in known}
    if service.decides and not site.idempotent:
        lanes = 1 if service.name == "access" else site.partitions
        own["BERTH_LANES"] = ",".join(str(lane) for lane in range(lanes))
    if site.guarded is not None:
        own |= _credentials(service.user, site.guarded)
    if service.inventory:
        own["BERTH_EXECUTOR_ID"] = service.name
        own["BERTH_NODES"] = str(NODES / service.inventory)
    return taken | own


def step_environment(step: Step, site: Site) -> dict[str, str]:
    """The variables of one step."""
    known = _values(site)
    told = {f"BERTH_{name.upper()}": known[name] for name in step.takes}
    return told if site.guarded is None or not step.is_root else told | _as_root(site.guarded)


def _credentials(user: str, guarded: Guarded) -> dict[str, str]:
    return {
        "BERTH_KAFKA_USER": user,
        "BERTH_KAFKA_PASSWORD_FILE": str(kafka_users.path_of(guarded.secrets, user)),
        "BERTH_KAFKA_CA": str(guarded.ca),
    }


def _as_root(guarded: Guarded) -> dict[str, str]:
    return {
        "BERTH_KAFKA": guarded.internal,
        "BERTH_KAFKA_CA": str(guarded.ca),
        "BERTH_KAFKA_CERTIFICATE": str(guarded.certificate),
        "BERTH_KAFKA_SECRETS": str(guarded.secrets),
    }


def _values(site: Site) -> dict[str, str]:
    is_https = site.otlp.startswith("https:")
    trust = {"otlp_ca": str(site.tls.ca)} if site.tls is not None and is_https else {}
    return trust | {
        "kafka": site.kafka,
        "postgres": site.postgres,
        "postgres_projector": site.postgres_projector,
        "postgres_gateway": site.postgres_gateway,
        "otlp": site.otlp,
        "work": str(site.work),
        "partitions": str(site.partitions),
        "idempotent": str(int(site.idempotent)),
        "durable": str(int(site.durable)),
        "window_ms": str(site.window_ms),
    }
