"""First use of started containers: key, pools, join token, and the addresses of the stack."""

from __future__ import annotations

import json
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from infra.compose import archive, project
from infra.compose import secrets as compose_secrets
from infra.compose.containers import POLL_S, READY_S, wait_well
from infra.machine.process import DidNotStart
from infra.supervisor.running import FILE, OPERATOR_KEY, RunningStack, save

POOLS: tuple[dict[str, object], ...] = (
    {"pool": "virtual"},
    # A container that is killed takes its workers along, and nothing proves it: a short silence.
    {"pool": "local", "backends": ["agent"], "stop_after_s": 60},
)
"""The pools of the compose file; later settings are kept."""
JOIN_TOKEN = "join.token"


def open_up() -> RunningStack:
    """Create the first key and the pools of started containers, and store their addresses."""
    project.FOLDER.mkdir(parents=True, exist_ok=True, mode=0o700)
    stack = running_stack(project.variables())
    save(stack)
    wait_well(("access", "gateway"))
    key = first_key(stack)
    for pool in POOLS:
        configure(stack, key, pool)
    for_containers(stack, key)
    leave_token(stack, key)
    return stack


def running_stack(settings: dict[str, str]) -> RunningStack:
    """Return the addresses of the published ports; contains the database password."""
    secrets = project.secrets_of(settings)
    ca = secrets / compose_secrets.CERTIFICATES / "ca.crt"
    dsn = (secrets / compose_secrets.DSN).read_text().strip()
    return RunningStack(
        data_dir=project.FOLDER,
        broker="kafka",
        partitions=int(settings["PARTITIONS"]),
        kafka=f"127.0.0.1:{settings['KAFKA_PORT']}",
        postgres=compose_secrets.outside(dsn, int(settings["POSTGRES_PORT"]), ca),
        gateway=f"https://127.0.0.1:{settings['GATEWAY_PORT']}",
        llm=f"https://127.0.0.1:{settings['LLM_PORT']}",
        otlp="",
        state=project.FOLDER,
        work=project.FOLDER,
        ports={},
        tls=True,
        ca=ca,
        secrets=secrets,
        archive=archive.claim(settings, archive.known()),
    )


def for_containers(stack: RunningStack, key: str) -> None:
    """Store the addresses for containers that run the command line, such as `load`."""
    folder = project.INSIDE
    folder.mkdir(exist_ok=True)
    dsn = (project.secrets_of(project.variables()) / compose_secrets.DSN).read_text().strip()
    save(
        stack.model_copy(
            update={
                "data_dir": folder,
                "kafka": "broker:9092",
                "gateway": "https://gateway:8080",
                "postgres": dsn,
                "ca": Path(compose_secrets.INSIDE_CA),
                "secrets": Path("/run/secrets"),
                "archive": project.variables()["ARCHIVE"],
            }
        )
    )
    (folder / OPERATOR_KEY).write_text(key + "\n")
    for name in (FILE, OPERATOR_KEY):
        # Another user reads them there; the folder above is closed.
        (folder / name).chmod(compose_secrets.READABLE)


def leave_token(stack: RunningStack, key: str) -> None:
    """Leave the join token of the container of pool `local`, which needs one the first time."""
    requested = {"pool": str(POOLS[1]["pool"]), "max_uses": 1, "approve": True}
    status, answer = send_request(stack, key, "POST", "/v1/nodes/tokens", requested)
    if status != 202:
        raise DidNotStart(f"join token: {answer}")
    path = project.NODE / JOIN_TOKEN
    scratch = path.with_suffix(".new")
    # Root of the container reads it, and no job.
    scratch.touch(mode=0o600)
    scratch.write_text(answer["token"] + "\n")
    scratch.replace(path)
    (project.INSIDE / JOIN_TOKEN).unlink(missing_ok=True)


def first_key(stack: RunningStack) -> str:
    """Return the operator key; create a new one if the stored one is not registered."""
    path = stack.data_dir / OPERATOR_KEY
    if (
        path.exists()
        and send_request(stack, path.read_text().strip(), "GET", "/v1/pools")[0] == 200
    ):
        return path.read_text().strip()
    project.output(
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
    while send_request(stack, key, "GET", "/v1/pools")[0] != 200:
        if time.monotonic() > ends:
            raise DidNotStart("the gateway does not accept the new operator key")
        time.sleep(POLL_S)
    return key


def configure(stack: RunningStack, key: str, pool: dict[str, object]) -> None:
    """Create a pool if it does not exist, or is of a release whose executors ran processes."""
    _, answer = send_request(stack, key, "GET", "/v1/pools")
    rows = [row for row in answer["items"] if row["pool"] == pool["pool"]]
    if any("process" not in row["settings"]["backends"] for row in rows):
        return
    status, answer = send_request(stack, key, "POST", "/v1/pools", pool)
    if status != 202:
        raise DidNotStart(f"pool {pool['pool']}: {answer}")


def send_request(
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
