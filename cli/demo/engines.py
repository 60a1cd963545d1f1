"""The two emulated LLM engines of the demo, their endpoint, and the keys of its clients."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from infra.machine.process import free_ports, tied
from infra.supervisor import control
from infra.supervisor.configuration import Program
from shared.contracts.access import CreateKey
from shared.contracts.base import Command
from shared.contracts.endpoints import ConfigureEndpoint, Upstream
from shared.contracts.keys import format_key, hash_secret

MODEL = "demo/Chat-7B"
ENGINES = 2
BATCH = 2
"""Requests of an engine at once: few, so that a light load fills both."""

QUEUE_LIMIT = 6
"""Requests of one tenant that may wait: fewer than the abuser sends."""


def engine_ports() -> list[int]:
    return free_ports(ENGINES)


def engine_programs(ports: Sequence[int]) -> tuple[Program, ...]:
    """Return the processes of the engines, which start on request."""
    return tuple(
        Program(
            engine_name(number),
            [
                *tied("TERM"),
                sys.executable,
                "-P",
                *("-m", "cli", "engine", "--model", MODEL, "--port", str(port)),
                *("--max-batch", str(BATCH), "--seed", str(number)),
            ],
        )
        for number, port in enumerate(ports, start=1)
    )


def engine_name(number: int) -> str:
    return f"engine-{number}"


def start_engines(data_dir: Path) -> None:
    """Start the engines of a stack, which was brought up with their programs."""
    for number in range(1, ENGINES + 1):
        control.start(data_dir, engine_name(number))


def configure_endpoint(ports: Sequence[int]) -> ConfigureEndpoint:
    """Return the command that makes the endpoint of both engines; its order is the default."""
    upstreams = tuple(
        Upstream(name=engine_name(number), url=f"http://127.0.0.1:{port}", max_requests=BATCH)
        for number, port in enumerate(ports, start=1)
    )
    return ConfigureEndpoint(endpoint=MODEL, upstreams=upstreams, queue_limit=QUEUE_LIMIT)


def client_keys(tenants: Sequence[str]) -> tuple[dict[str, str], list[Command]]:
    """Return a new key by tenant, and the commands that register them."""
    keys: dict[str, str] = {}
    commands: list[Command] = []
    for tenant in tenants:
        key_id, secret = f"llm-{tenant}-{secrets.token_hex(4)}", secrets.token_urlsafe(32)
        keys[tenant] = format_key(key_id, secret)
        digest = hash_secret(secret)
        commands.append(CreateKey(key_id=key_id, sha256=digest, role="submitter", tenant=tenant))
    return keys, commands
