"""`python -m infra.compose up|down`: start docker-compose.yml up to a first key, and stop it.

`prepare` and `open` are the steps of `up` before and after the containers start, for Tilt.
Addresses and key are stored in `.berth/compose`, so that `BERTH_HOME=.berth/compose berth ...`
works. Docker Compose 2 and docker-compose 1.29 are supported.
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.compose import secrets as compose_secrets
from infra.machine.process import DidNotStart
from infra.standins.build import ensure, images_of
from infra.supervisor.running import FILE, OPERATOR_KEY, RunningStack, save

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".berth" / "compose"
POOLS: tuple[dict[str, object], ...] = (
    {"pool": "virtual"},
    # A container that is killed takes its workers along, and nothing proves it: a short silence.
    {"pool": "local", "backends": ["agent"], "stop_after_s": 60},
)
"""The pools of the compose file; later settings are kept."""
READY_S = 300.0
POLL_S = 0.5
LAST_LINES = "15"
PROFILES = ("core", "observability", "load")
JOIN_TOKEN = "join.token"
INSIDE = "inside"
"""Directory below `FOLDER` for containers that run the command line."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Container:
    """A container of the project; `health` is empty if the image has no health check."""

    service: str
    name: str
    id: str
    state: str
    exit_code: int
    health: str

    @property
    def is_well(self) -> bool:
        """Whether it is healthy, or has ended with 0 if it is a one-shot step."""
        if self.state == "exited":
            return self.exit_code == 0
        return self.state == "running" and self.health in ("", "healthy")


def up(say: Say) -> RunningStack:
    """Create secrets and images, start the containers, create key and pools."""
    compose = compose_command()
    prepare(say)
    say("building the image of Berth")
    # Any service builds it: they all have the same one.
    _run([*compose, "build", "access"])
    say("starting the containers")
    _run([*compose, "up", "--detach", "--no-build", "--remove-orphans"])
    stack = open_up()
    say("waiting until all are ready")
    wait_well()
    return stack


def prepare(say: Say) -> None:
    """Create secrets and the images of the parts."""
    settings = variables()
    # A folder that Docker makes for a container belongs to root.
    (FOLDER / INSIDE).mkdir(parents=True, exist_ok=True)
    FOLDER.chmod(0o700)
    compose_secrets.make(_secrets(settings))
    for line in ensure(settings, say):
        say(f"STAND-IN {line}")


def open_up() -> RunningStack:
    """Create the first key and the pools of started containers, and store their addresses."""
    FOLDER.mkdir(parents=True, exist_ok=True, mode=0o700)
    stack = running_stack(variables())
    save(stack)
    wait_well(("access", "gateway"))
    key = first_key(stack)
    for pool in POOLS:
        configure(stack, key, pool)
    for_containers(stack, key)
    leave_token(stack, key)
    return stack


def down(volumes: bool) -> None:
    """Stop and remove the containers; with `volumes` also data, secrets and the key."""
    profiles = [option for name in PROFILES for option in ("--profile", name)]
    _run([*compose_command(), *profiles, "down", *(["--volumes"] if volumes else [])])
    if not volumes:
        return
    compose_secrets.forget(_secrets(variables()))
    for folder in (FOLDER, FOLDER / INSIDE):
        for name in (FILE, OPERATOR_KEY, JOIN_TOKEN):
            (folder / name).unlink(missing_ok=True)


def variables() -> dict[str, str]:
    """Return the variables of `.env`, overridden by the environment."""
    variables = images_of(ROOT / ".env")
    return variables | {name: os.environ[name] for name in variables if name in os.environ}


def compose_command() -> list[str]:
    """Return the command of Docker's compose plugin, else of docker-compose."""
    for command in (["docker", "compose"], ["docker-compose"]):
        try:
            done = subprocess.run([*command, "version"], capture_output=True, check=False)
        except FileNotFoundError:
            continue
        if done.returncode == 0:
            return command
    raise DidNotStart("neither `docker compose` nor `docker-compose` is installed")


def running_stack(settings: dict[str, str]) -> RunningStack:
    """Return the addresses of the published ports; contains the database password."""
    secrets = _secrets(settings)
    ca = secrets / compose_secrets.CERTIFICATES / "ca.crt"
    dsn = (secrets / compose_secrets.DSN).read_text().strip()
    return RunningStack(
        data_dir=FOLDER,
        broker="kafka",
        partitions=int(settings["PARTITIONS"]),
        kafka=f"127.0.0.1:{settings['KAFKA_PORT']}",
        postgres=compose_secrets.outside(dsn, int(settings["POSTGRES_PORT"]), ca),
        gateway=f"https://127.0.0.1:{settings['GATEWAY_PORT']}",
        llm=f"https://127.0.0.1:{settings['LLM_PORT']}",
        otlp="",
        state=FOLDER,
        work=FOLDER,
        ports={},
        tls=True,
        ca=ca,
        secrets=secrets,
    )


def for_containers(stack: RunningStack, key: str) -> None:
    """Store the addresses for containers that run the command line, such as `load`."""
    folder = FOLDER / INSIDE
    folder.mkdir(exist_ok=True)
    dsn = (_secrets(variables()) / compose_secrets.DSN).read_text().strip()
    save(
        stack.model_copy(
            update={
                "data_dir": folder,
                "kafka": "broker:9092",
                "gateway": "https://gateway:8080",
                "postgres": dsn,
                "ca": Path(compose_secrets.INSIDE_CA),
                "secrets": Path("/run/secrets"),
            }
        )
    )
    (folder / OPERATOR_KEY).write_text(key + "\n")
    for name in (FILE, OPERATOR_KEY):
        # Another user reads them there; the folder above is closed.
        (folder / name).chmod(compose_secrets.READABLE)


def leave_token(stack: RunningStack, key: str) -> None:
    """Leave the join token of the container of pool `local`, which needs one the first time."""
    wanted = {"pool": str(POOLS[1]["pool"]), "max_uses": 1, "approve": True}
    status, answer = ask(stack, key, "POST", "/v1/nodes/tokens", wanted)
    if status != 202:
        raise DidNotStart(f"join token: {answer}")
    path = FOLDER / INSIDE / JOIN_TOKEN
    scratch = path.with_suffix(".new")
    scratch.write_text(answer["token"] + "\n")
    scratch.chmod(compose_secrets.READABLE)
    scratch.replace(path)


def traces_url() -> str:
    """Return the address of the traces."""
    return f"http://127.0.0.1:{variables()['JAEGER_PORT']}"


def containers() -> list[Container]:
    """Return the containers of the project, running or not."""
    project = variables()["COMPOSE_PROJECT_NAME"]
    listed = _output(
        [
            "docker",
            "ps",
            "--all",
            "--quiet",
            "--no-trunc",
            "--filter",
            f"label=com.docker.compose.project={project}",
        ]
    )
    ids = listed.split()
    inspected = json.loads(_output(["docker", "inspect", *ids])) if ids else []
    return sorted(
        (_container(container) for container in inspected), key=lambda container: container.service
    )


def wait_well(services: tuple[str, ...] = (), timeout_s: float = READY_S) -> None:
    """Wait until these containers, or all, are healthy. Raises DidNotStart with the log's end."""
    ends = time.monotonic() + timeout_s
    while bad := [
        container
        for container in containers()
        if container.is_well is False and (not services or container.service in services)
    ]:
        if time.monotonic() > ends:
            first = bad[0]
            raise DidNotStart(
                f"{first.service} is {first.health or first.state}: {log_tail(first)}"
            )
        time.sleep(POLL_S)


def log_tail(container: Container) -> str:
    """Return the last lines of a container's log."""
    command = ["docker", "logs", "--tail", LAST_LINES, container.id]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip() or "no output"


def first_key(stack: RunningStack) -> str:
    """Return the operator key; create a new one if the stored one is not registered."""
    path = stack.data_dir / OPERATOR_KEY
    if path.exists() and ask(stack, path.read_text().strip(), "GET", "/v1/pools")[0] == 200:
        return path.read_text().strip()
    _output(
        [
            sys.executable,
            "-m",
            "cli",
            "access",
            "bootstrap",
            "--again",
            "--data",
            str(stack.data_dir),
        ]
    )
    key = path.read_text().strip()
    ends = time.monotonic() + READY_S
    while ask(stack, key, "GET", "/v1/pools")[0] != 200:
        if time.monotonic() > ends:
            raise DidNotStart("the gateway does not accept the new operator key")
        time.sleep(POLL_S)
    return key


def configure(stack: RunningStack, key: str, pool: dict[str, object]) -> None:
    """Create a pool if it does not exist, or is of a release whose executors ran processes."""
    _, answer = ask(stack, key, "GET", "/v1/pools")
    rows = [row for row in answer["items"] if row["pool"] == pool["pool"]]
    if any("process" not in row["backends"] for row in rows):
        return
    status, answer = ask(stack, key, "POST", "/v1/pools", pool)
    if status != 202:
        raise DidNotStart(f"pool {pool['pool']}: {answer}")


def ask(
    stack: RunningStack, key: str, method: str, path: str, body: object = None
) -> tuple[int, Any]:
    """Send a request to the API; return status and JSON, status 0 without an answer."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(stack.gateway + path, data, headers, method=method)
    try:
        trust = ssl.create_default_context(cafile=stack.ca)
        with urllib.request.urlopen(request, timeout=15, context=trust) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def addresses(stack: RunningStack) -> Iterator[str]:
    """Return the lines shown after a start."""
    settings = variables()
    secrets = _secrets(settings)
    yield f"API      {stack.gateway}   (docs at /docs)"
    yield f"LLM      {stack.llm}"
    yield f"traces   {traces_url()}"
    yield f"figures  http://127.0.0.1:{settings['METRICS_PORT']}"
    yield f"metrics  http://127.0.0.1:{settings['PROMETHEUS_PORT']} (Prometheus)"
    password = secrets / compose_secrets.GRAFANA
    yield f"boards   http://127.0.0.1:{settings['GRAFANA_PORT']} (Grafana; admin, {password})"
    yield f"Kafka    {stack.kafka} (TLS; users' passwords in {secrets})"
    yield f"CA       {stack.ca}"
    yield f"key      {stack.data_dir / OPERATOR_KEY}"
    yield f"try      BERTH_HOME={stack.data_dir} .venv/bin/berth nodes"


def _container(answer: dict[str, Any]) -> Container:
    state = answer["State"]
    return Container(
        service=answer["Config"]["Labels"]["com.docker.compose.service"],
        name=answer["Name"].lstrip("/"),
        id=answer["Id"],
        state=state["Status"],
        exit_code=state["ExitCode"],
        health=state.get("Health", {}).get("Status", ""),
    )


def _secrets(settings: dict[str, str]) -> Path:
    return ROOT / settings["SECRETS"]


def _run(command: list[str]) -> None:
    """Run a command in the foreground, with its output shown."""
    # docker-compose 1.29 gives up after 60 s, which a busy machine needs for many containers.
    env = {"COMPOSE_HTTP_TIMEOUT": "300", **os.environ}
    if subprocess.run(command, cwd=ROOT, env=env, check=False).returncode:
        raise DidNotStart(f"`{' '.join(command)}` failed")


def _output(command: list[str]) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DidNotStart(f"{' '.join(command[:4])}: {done.stderr.strip()}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m infra.compose", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start all containers and print their addresses")
    commands.add_parser("prepare", help="create the secrets and the images that no registry has")
    commands.add_parser("open", help="create the first key and the pools of started containers")
    commands.add_parser("load", help="submit a synthetic workload as events and wait for its end")
    ends = commands.add_parser("down", help="stop and remove the containers")
    ends.add_argument(
        "--volumes", action="store_true", help="also remove all data, secrets and the key"
    )
    options = parser.parse_args()
    started = time.monotonic()
    try:
        if options.command == "down":
            down(options.volumes)
            return
        if options.command == "prepare":
            prepare(_say)
            return
        if options.command == "load":
            _run([*compose_command(), "--profile", "load", "run", "--rm", "load"])
            return
        stack = up(_say) if options.command == "up" else open_up()
    except DidNotStart as error:
        raise SystemExit(str(error)) from None
    for line in addresses(stack):
        _say(line)
    _say(f"all containers healthy after {time.monotonic() - started:.0f} s")


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201
