"""Starts and stops the whole stack under a supervisor."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from infra.machine.folders import agent_run_dir, work_dir
from infra.machine.owned_folders import remove_stale
from infra.machine.process import DidNotStart, free_ports
from infra.postgres import server as postgres
from infra.supervisor import control
from infra.supervisor.archive_folder import claim_archive
from infra.supervisor.data_folder import OtherStack, claim_folder
from infra.supervisor.launch import TRACING, StackOptions, executors_of_agents, launch, reap
from infra.supervisor.listening import Listen
from infra.supervisor.outside import LOCK, tidy
from infra.supervisor.parts import passwords_of
from infra.supervisor.ports import choose_ports, earlier_ports
from infra.supervisor.readiness import is_ready, is_serving, refuse_ended, wait_ready, why_stopped
from infra.supervisor.running import NoStack, RunningStack, load, save
from infra.supervisor.stack import AGENT
from shared.process.progress import ReportLine

__all__ = [
    "DidNotStart",
    "NoStack",
    "OtherStack",
    "RunningStack",
    "ServiceStatus",
    "StackOptions",
    "down",
    "is_ready",
    "is_running",
    "load",
    "pid_of",
    "refuse_ended",
    "restart",
    "status",
    "up",
    "wait_ready",
    "why_stopped",
]

POLL_S = 0.05
STOP_S = 120.0
RETIRED = frozenset({"executor-local"})
"""Services of earlier releases: a stack that began with one stops it when it is upgraded."""


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """State of a process; `ready` if its health check succeeds."""

    name: str
    state: str
    pid: int
    uptime_s: int
    ready: bool
    port: int


def up(options: StackOptions, report_line: ReportLine = lambda line: None) -> RunningStack:
    """Start a stack and return once it is ready; on failure nothing is left running.

    With `foreground` the stack ends with the calling process.
    """
    data_dir = options.data_dir.resolve()
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o711)
    remove_stale()
    with _alone(data_dir):
        if control.is_up(data_dir):
            raise NoStack(f"a stack is already running in {data_dir}; stop it with `berth down`")
        claim_folder(data_dir, options.broker)
        archive = claim_archive(data_dir, options)
        stack = _plan(options, data_dir, archive)
        try:
            report_line(_what_starts(stack))
            save(stack)
            launch(options, stack)
            names = options.awaited or tuple(state.name for state in options.services)
            report_line("waiting until all are ready")
            wait_ready(data_dir, names, options.ready_timeout_s)
        except BaseException:
            down(data_dir)
            raise
    return stack


def _what_starts(stack: RunningStack) -> str:
    broker = "" if stack.is_broker_external else f"the {stack.broker} broker, "
    database = "" if stack.is_postgres_external else "Postgres and "
    return f"starting {broker}{database}the services"


def down(data_dir: Path) -> bool:
    """Stop a stack in order and wait for its end; False if none was running."""
    data_dir = data_dir.resolve()
    ran = control.is_up(data_dir)
    if ran:
        control.shut_down(data_dir)
        _wait_for_end(data_dir)
    reap(data_dir, STOP_S)
    with suppress(NoStack):
        tidy(load(data_dir))
    return ran


def status(data_dir: Path) -> list[ServiceStatus]:
    """Return the state of every process; empty if no stack is running."""
    data_dir = data_dir.resolve()
    states = control.processes(data_dir)
    if not states:
        return []
    stack = load(data_dir)
    return [_status(stack, state) for state in states]


def restartable(stack: RunningStack) -> list[str]:
    """Return the services that are restarted in turn, readers first.

    The agent is one of them where workers go on without it.
    """
    agent = [AGENT] if stack.has_node and stack.durable else []
    return [*reversed(stack.ports), *agent]


def restart(data_dir: Path, service: str) -> None:
    """Stop a service and start it again, unless it is retired; return before it is ready."""
    data_dir = data_dir.resolve()
    pid_of(data_dir, service)
    control.stop(data_dir, service)
    if service not in RETIRED:
        control.start(data_dir, service)


def pid_of(data_dir: Path, service: str) -> int:
    """Return the pid of a service, `broker` or `postgres`; 0 during a restart."""
    pids = {process.name: process.pid for process in control.processes(data_dir.resolve())}
    if service not in pids:
        raise NoStack(f"no service {service} runs in {data_dir}")
    return pids[service]


def is_running(data_dir: Path) -> bool:
    """Return whether a stack is running in this directory."""
    return control.is_up(data_dir.resolve())


def _wait_for_end(data_dir: Path) -> None:
    ends = time.monotonic() + STOP_S
    while control.is_up(data_dir):
        if time.monotonic() > ends:
            raise DidNotStart(f"the supervisor in {data_dir} did not stop within {STOP_S:.0f} s")
        time.sleep(POLL_S)


@contextmanager
def _alone(data_dir: Path) -> Iterator[None]:
    with (data_dir / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _plan(options: StackOptions, data_dir: Path, archive: str) -> RunningStack:
    requested = [(state.name, port) for state in options.services for port in state.all_ports]
    if options.tracing:
        requested += [(TRACING, "otlp"), (TRACING, "ui")]
    ports = choose_ports(requested, earlier_ports(data_dir, options.broker))
    [broker] = free_ports(1)
    _settle_ports(options, ports)
    root = data_dir / options.broker
    guarded = options.broker == "kafka"
    external = options.kafka
    own_secrets = data_dir / "secrets" if guarded else None
    scheme = "https" if options.tls else "http"
    gateway = _url(ports, "gateway", "http", scheme)
    if options.listen is not None and gateway:
        gateway = options.listen.url(ports["gateway"]["http"], options.tls)
    return RunningStack(
        data_dir=data_dir,
        broker=options.broker,
        partitions=options.partitions,
        kafka=f"127.0.0.1:{broker}" if external is None else external.servers,
        postgres=_postgres_address(options, root),
        host=options.listen.host if options.listen is not None else "",
        gateway=gateway,
        llm=_url(ports, "throttle", "http", scheme),
        otlp=_url(ports, TRACING, "otlp") or gateway,
        state=root / "state",
        work=work_dir(root / "state"),
        agent_run=agent_run_dir(root) if options.node is not None else None,
        ports=ports,
        traces=_url(ports, TRACING, "ui"),
        tls=options.tls,
        ca=data_dir / "certificates" / "ca.crt" if guarded or options.tls else None,
        kafka_ca=external.ca if external is not None else None,
        archive=archive,
        is_postgres_external=options.postgres is not None,
        secrets=external.secrets if external is not None else own_secrets,
    )


def _postgres_address(options: StackOptions, root: Path) -> str:
    if options.postgres is not None:
        return options.postgres.owner(passwords_of(root))
    return postgres.dsn(root / "postgres")


def _settle_ports(options: StackOptions, ports: Mapping[str, dict[str, int]]) -> None:
    """Set the ports that the options name."""
    listen = options.listen or Listen(port=options.http_port)
    if listen.port and "gateway" in ports:
        ports["gateway"]["http"] = listen.port
    if options.listen is not None:
        for number, name in enumerate(executors_of_agents(options.services), start=1):
            ports[name]["http"] = listen.port + number


def _url(
    ports: Mapping[str, Mapping[str, int]], service: str, port: str, scheme: str = "http"
) -> str:
    number = ports.get(service, {}).get(port)
    return f"{scheme}://127.0.0.1:{number}" if number else ""


def _status(stack: RunningStack, process: control.ProcessState) -> ServiceStatus:
    port = stack.ports.get(process.name, {}).get("metrics", 0)
    ready = process.pid > 0 and is_serving(stack, process.name)
    return ServiceStatus(process.name, process.state, process.pid, process.uptime_s, ready, port)
