"""The compose project: its folder, the variables of `.env`, and the commands of Docker."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from infra.machine.process import DidNotStart
from infra.standins.build import images_of

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".berth" / "compose"
INSIDE = FOLDER / "inside"
"""Directory for containers that run the command line; it has the operator's key."""
NODE = FOLDER / "node"
"""Directory for the container of the agent, whose jobs are tenants': a join token alone."""
PROFILES = ("core", "observability", "load")


def variables() -> dict[str, str]:
    """Return the variables of `.env`, overridden by the environment."""
    variables = images_of(ROOT / ".env")
    return variables | {name: os.environ[name] for name in variables if name in os.environ}


def secrets_of(settings: dict[str, str]) -> Path:
    """Return the folder of the secrets."""
    return ROOT / settings["SECRETS"]


def traces_url() -> str:
    """Return the address of the traces."""
    return f"http://127.0.0.1:{variables()['JAEGER_PORT']}"


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


def run(command: list[str]) -> None:
    """Run a command in the foreground, with its output shown."""
    # docker-compose 1.29 gives up after 60 s, which a busy machine needs for many containers.
    env = {"COMPOSE_HTTP_TIMEOUT": "300", **os.environ}
    if subprocess.run(command, cwd=ROOT, env=env, check=False).returncode:
        raise DidNotStart(f"`{' '.join(command)}` failed")


def output(command: list[str]) -> str:
    """Run a command and return what it prints. Raises DidNotStart."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DidNotStart(f"{' '.join(command[:4])}: {done.stderr.strip()}")
    return done.stdout
