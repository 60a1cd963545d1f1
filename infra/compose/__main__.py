"""`python -m infra.compose up|down`: start docker-compose.yml up to a first key, and stop it.

`prepare` and `open` are the steps of `up` before and after the containers start, for Tilt.
Addresses and key are stored in `.berth/compose`, so that `BERTH_HOME=.berth/compose berth ...`
works. Docker Compose 2 and docker-compose 1.29 are supported.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence

from infra.compose import archive, project
from infra.compose import secrets as compose_secrets
from infra.compose.containers import wait_well
from infra.compose.opening import JOIN_TOKEN, open_up, running_stack
from infra.machine.process import DidNotStart
from infra.standins.build import ensure
from infra.supervisor.running import FILE, OPERATOR_KEY, RunningStack, save
from infra.supervisor.stack import SERVICES
from shared.process.progress import ReportLine


def up(report_line: ReportLine) -> RunningStack:
    """Create secrets and images, start the containers, create key and pools."""
    compose = project.compose_command()
    prepare(report_line)
    report_line("building the image of Berth")
    # Any service builds it: they all have the same one.
    project.run([*compose, "build", "access"])
    report_line("starting the containers")
    project.run([*compose, "up", "--detach", "--no-build", "--remove-orphans"])
    stack = open_up()
    report_line("waiting until all are ready")
    wait_well()
    return stack


def prepare(report_line: ReportLine) -> None:
    """Create secrets and the images of the parts."""
    settings = project.variables()
    # A folder that Docker makes for a container belongs to root.
    for folder in (project.INSIDE, project.NODE):
        folder.mkdir(parents=True, exist_ok=True)
    project.FOLDER.chmod(0o700)
    compose_secrets.make(project.secrets_of(settings))
    archive.claim(settings, archive.known())
    for line in ensure(settings, report_line):
        report_line(f"STAND-IN {line}")


def start_broker(report_line: ReportLine) -> RunningStack:
    """Start broker and topics alone, for `berth restore --into`."""
    compose = project.compose_command()
    prepare(report_line)
    project.run([*compose, "build", "access"])
    project.run([*compose, "up", "--detach", "--no-build", "broker", "topics"])
    wait_well(("broker", "topics"))
    stack = running_stack(project.variables())
    save(stack)
    return stack


def checkpoint(report_line: ReportLine) -> None:
    """Build the image of this code, and let it fold the ledgers beside the running services."""
    compose = project.compose_command()
    prepare(report_line)
    project.run([*compose, "build", "access"])
    for command in checkpoint_commands(compose):
        project.run(command)


def checkpoint_commands(compose: Sequence[str]) -> list[list[str]]:
    """Return a command per decider: a container of the new image with its data, beside it."""
    fold = ["-m", "cli", "ledgers", "checkpoint", "--service"]
    beside = ["run", "--rm", "--no-deps", "-T", "--entrypoint", "python"]
    return [
        [*compose, *beside, service.name, *fold, service.name]
        for service in SERVICES
        if service.decides
    ]


def down(volumes: bool) -> None:
    """Stop and remove the containers; with `volumes` also data, secrets and the key."""
    profiles = [option for name in project.PROFILES for option in ("--profile", name)]
    project.run(
        [*project.compose_command(), *profiles, "down", *(["--volumes"] if volumes else [])]
    )
    if not volumes:
        return
    compose_secrets.forget(project.secrets_of(project.variables()))
    for folder in (project.FOLDER, project.INSIDE, project.NODE):
        for name in (FILE, OPERATOR_KEY, JOIN_TOKEN):
            (folder / name).unlink(missing_ok=True)


def addresses(stack: RunningStack) -> Iterator[str]:
    """Return the lines shown after a start."""
    settings = project.variables()
    secrets = project.secrets_of(settings)
    yield f"API      {stack.gateway}   (docs at /docs)"
    yield f"LLM      {stack.llm}"
    yield f"traces   {project.traces_url()}"
    yield f"figures  http://127.0.0.1:{settings['METRICS_PORT']}"
    yield f"metrics  http://127.0.0.1:{settings['PROMETHEUS_PORT']} (Prometheus)"
    password = secrets / compose_secrets.GRAFANA
    yield f"boards   http://127.0.0.1:{settings['GRAFANA_PORT']} (Grafana; admin, {password})"
    yield f"Kafka    {stack.kafka} (TLS; users' passwords in {secrets})"
    yield f"CA       {stack.ca}"
    yield f"key      {stack.data_dir / OPERATOR_KEY}"
    yield f"try      BERTH_HOME={stack.data_dir} .venv/bin/berth nodes"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m infra.compose", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start all containers and print their addresses")
    commands.add_parser("prepare", help="create the secrets and the images that no registry has")
    commands.add_parser("open", help="create the first key and the pools of started containers")
    commands.add_parser("load", help="submit a synthetic workload as events and wait for its end")
    commands.add_parser("broker", help="start the broker alone, with its topics, for a restore")
    commands.add_parser("checkpoint", help="fold the ledgers with the code of a new image")
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
        if options.command == "broker":
            stack = start_broker(_say)
            _say(f"restore  .venv/bin/berth restore BACKUP --into {stack.data_dir}")
            return
        if options.command == "checkpoint":
            checkpoint(_say)
            return
        if options.command == "load":
            project.run([*project.compose_command(), "--profile", "load", "run", "--rm", "load"])
            return
        stack = up(_say) if options.command == "up" else open_up()
    except DidNotStart as error:
        raise SystemExit(str(error)) from None
    for line in addresses(stack):
        _say(line)
    _say(f"all containers healthy after {time.monotonic() - started:.0f} s")


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
