"""Writes the supervisor's configuration of a stack and starts its processes in order."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from infra.machine.folders import make_own
from infra.machine.process import START_S, DidNotStart, tied
from infra.postgres import server as postgres
from infra.supervisor import control, local_node, outside, parts
from infra.supervisor.configuration import Program, render
from infra.supervisor.external import ExternalKafka, ExternalPostgres
from infra.supervisor.given_settings import INHERITED_VARIABLES, given_settings, given_step_settings
from infra.supervisor.listening import Listen
from infra.supervisor.logs import last_log_lines, mark_start, path_of
from infra.supervisor.running import OPERATOR_KEY, Broker, RunningStack
from infra.supervisor.site import Site, Tls
from infra.supervisor.stack import (
    BY_NAME,
    EXECUTOR,
    SERVICES,
    STEPS,
    Service,
    SetupStep,
    environment,
    step_environment,
)
from infra.supervisor.supervisord import STOPPED
from shared.contracts.topics import LANES
from shared.secrets.secret_keys import FILE, make_keys

POLL_S = 0.1
TRACING, BUNDLES, JOB_LOGS = "tracing", "bundles", "job-logs"
"""Folders of bundles and output of jobs; the output goes with the embedded broker."""

_SUPERVISORS: dict[Path, subprocess.Popen[bytes]] = {}
"""Supervisors started by this process, which has to reap them."""


@dataclass(frozen=True, slots=True)
class StackOptions:
    """Options of a start; `env` maps a service ("*" for all) to variables to set.

    `awaited` are the services that must be ready before `up` returns, empty for all. An executor is
    ready once its pool is configured.
    """

    data_dir: Path = Path(".berth")
    broker: Broker = "embedded"
    partitions: int = LANES
    http_port: int = 0
    kafka: ExternalKafka | None = None
    """The Kafka of the broker `external`."""
    postgres: ExternalPostgres | None = None
    """A Postgres that runs elsewhere; None for the stack's own."""
    listen: Listen | None = None
    """Address of the API and of executors of agents; None for free ports of the loopback."""
    archive: str = ""
    """Folder or address of a new archive; empty for the one that the stack has, or none."""
    node: local_node.LocalNode | None = None
    """This machine as a node, whose agent starts once it has an identity; None for no node."""
    foreground: bool = False
    tls: bool = False
    """The APIs speak TLS, by a certificate of the stack's own CA."""
    tracing: bool = False
    """Start Zipkin too, which needs Java and, the first time, Maven."""
    ready_timeout_s: float = START_S
    awaited: tuple[str, ...] = ()
    services: tuple[Service, ...] = SERVICES
    steps: tuple[SetupStep, ...] = STEPS
    env: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    beside: tuple[Program, ...] = ()
    """More programs, which start on request and end with the stack."""


def launch(options: StackOptions, stack: RunningStack) -> None:
    """Start the parts, run the steps and start the services without waiting for them."""
    prepare(stack)
    parts.prepare(stack, options.postgres)
    if options.node is not None:
        local_node.prepare(stack, options.node)
    outside.own(stack, os.getpid())
    _supervise(options, stack)
    site = _site(options, stack)
    with ThreadPoolExecutor() as pool:
        done = {
            "broker": pool.submit(_wait, stack, "broker", lambda: parts.is_broker_open(stack)),
            "postgres": pool.submit(_wait_for_postgres, stack),
        }
        for step in options.steps:
            needs = [done[name] for name in step.needs]
            done[step.name] = pool.submit(_run, stack, step, site, needs)
        for service in options.services:
            for name in service.needs:
                done[name].result()
            control.start(stack.data_dir, service.name)


def prepare(stack: RunningStack) -> None:
    """Create the directories of the stack; clear those of an embedded broker."""
    folder = stack.state.parent
    if stack.broker == "embedded":
        shutil.rmtree(folder, ignore_errors=True)
        for emptied in outside.of_workers(stack):
            shutil.rmtree(emptied, ignore_errors=True)
        (stack.data_dir / OPERATOR_KEY).unlink(missing_ok=True)
    for directory in (folder, stack.state, stack.work):
        make_own(directory, 0o711)
    (stack.data_dir / "logs").mkdir(exist_ok=True, mode=0o700)
    make_keys(Path(_secret_keys(stack)))
    mark_start(stack.data_dir)
    (stack.data_dir / STOPPED).unlink(missing_ok=True)


def reap(data_dir: Path, timeout_s: float) -> None:
    """Wait for the end of the supervisor if this process started it."""
    process = _SUPERVISORS.get(data_dir)
    if process is not None:
        process.wait(timeout_s)
        del _SUPERVISORS[data_dir]


def _programs(options: StackOptions, stack: RunningStack) -> list[Program]:
    site = _site(options, stack)
    return [
        *parts.programs(stack),
        *([_tracing(stack)] if stack.traces else []),
        *(_program(options, stack, site, service) for service in options.services),
        *([local_node.agent_program(stack)] if options.node is not None else []),
        *options.beside,
    ]


def _tracing(stack: RunningStack) -> Program:
    """Return the program of Zipkin and its gateway; no other process depends on it."""
    ports = stack.ports[TRACING]
    command = [
        *tied("TERM"),
        sys.executable,
        "-P",
        "-m",
        "infra.tracing",
        "--also",
        stack.gateway,
        "--otlp-port",
        str(ports["otlp"]),
        "--ui-port",
        str(ports["ui"]),
        *(("--ca", str(stack.ca)) if stack.tls else ()),
    ]
    return Program(TRACING, command, is_part=True)


def metrics_of(stack: RunningStack) -> str:
    """Return the metrics addresses of all services, for the gateway's page."""
    ports = ((name, ports["metrics"]) for name, ports in stack.ports.items() if "metrics" in ports)
    return ",".join(f"{name}=127.0.0.1:{port}" for name, port in ports)


def executors_of(options: StackOptions, stack: RunningStack) -> str:
    """Return the addresses at which agents reach their executors."""
    host = options.listen or Listen()
    names = executors_of_agents(options.services)
    return ",".join(host.url(stack.ports[name]["http"], stack.tls) for name in names)


def executors_of_agents(services: Sequence[Service]) -> list[str]:
    """Return the names of the executors that agents connect to."""
    return [one.name for one in services if one.user == EXECUTOR and "http" in one.ports]


def _program(options: StackOptions, stack: RunningStack, site: Site, service: Service) -> Program:
    env = environment(service, site, stack.ports[service.name])
    if service.module == BY_NAME["gateway"].module:
        env["BERTH_METRICS_OF"] = metrics_of(stack)
        if stack.tls:
            env["BERTH_EXECUTOR_CA"] = str(stack.ca)
    if "http" in service.ports and service.user in (EXECUTOR, BY_NAME["gateway"].user):
        env["BERTH_NODE_EXECUTORS"] = executors_of(options, stack)
    env |= given_settings(service.user, os.environ, service=service.name)
    env |= {**options.env.get("*", {}), **options.env.get(service.name, {})}
    (site.data / service.name).mkdir(exist_ok=True, mode=0o700)
    command = [*tied("TERM"), sys.executable, "-P", *service.arguments]
    return Program(service.name, command, env)


def _supervise(options: StackOptions, stack: RunningStack) -> None:
    config = stack.data_dir / "supervisord.conf"
    socket = control.socket_path(stack.data_dir)
    make_own(socket.parent, 0o700)
    config.touch(mode=0o600)
    config.write_text(render(stack.data_dir, socket, _programs(options, stack)))
    volatile = "broker" if stack.broker == "embedded" else ""
    command = [sys.executable, "-P", "-m", "infra.supervisor.supervisord", str(config), volatile]
    with (stack.data_dir / "logs" / "stack.log").open("ab") as log:
        process = subprocess.Popen(
            [*(tied("TERM") if options.foreground else ()), *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=None if options.foreground else log,
            env={name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ},
            start_new_session=True,
        )
    _SUPERVISORS[stack.data_dir] = process
    outside.own(stack, process.pid)
    _wait(stack, "stack", lambda: process.poll() is not None or control.is_up(stack.data_dir))
    if process.returncode is not None:
        raise DidNotStart(f"the supervisor ended: {last_log_lines(stack.data_dir, 'stack')}")


def _site(options: StackOptions, stack: RunningStack) -> Site:
    return Site(
        kafka=stack.kafka,
        postgres=stack.postgres,
        postgres_projector=parts.address_of(stack, postgres.PROJECTOR),
        postgres_gateway=parts.address_of(stack, postgres.GATEWAY),
        postgres_notifier=parts.address_of(stack, postgres.NOTIFIER),
        otlp=stack.otlp,
        data=stack.state,
        partitions=stack.partitions,
        idempotent=stack.durable,
        durable=stack.durable,
        guarded=parts.guarded(stack),
        tls=_tls(stack),
        host=stack.host,
        archive=stack.archive,
        secret_keys=_secret_keys(stack),
        job_logs=os.environ.get("BERTH_JOB_LOGS") or str(stack.state.parent / JOB_LOGS),
        public_url=stack.gateway,
        bundles=os.environ.get("BERTH_BUNDLES") or str(stack.data_dir / BUNDLES),
    )


def _secret_keys(stack: RunningStack) -> str:
    """Return the file of keys of secrets: the one that the operator names, else the stack's own."""
    return os.environ.get("BERTH_SECRET_KEYS") or str(stack.data_dir / FILE)


def _tls(stack: RunningStack) -> Tls | None:
    if stack.ca is None or not stack.tls:
        return None
    pems = stack.ca.parent
    return Tls(stack.ca, pems / "api.crt", pems / "api.key")


def _wait_for_postgres(stack: RunningStack) -> None:
    _wait(stack, "postgres", lambda: parts.is_postgres_ready(stack))
    parts.create_database(stack)


def _wait(stack: RunningStack, name: str, is_ready: Callable[[], bool]) -> None:
    ends = time.monotonic() + START_S
    while not is_ready():
        if time.monotonic() > ends:
            log, words = path_of(stack.data_dir, name), last_log_lines(stack.data_dir, name)
            raise DidNotStart(f"{name} is not ready after {START_S:g} s; its log {log}: {words}")
        time.sleep(POLL_S)


def _run(stack: RunningStack, step: SetupStep, site: Site, needs: list[Future[None]]) -> None:
    for need in needs:
        need.result()
    env = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
    env |= step_environment(step, site) | given_step_settings(step.name, os.environ)
    done = subprocess.run(
        [sys.executable, "-P", *step.arguments],
        env=env,
        cwd=stack.data_dir,
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
    )
    if done.returncode:
        raise DidNotStart(f"{step.name}: {(done.stdout + done.stderr).strip()}")
