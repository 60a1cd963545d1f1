"""The node that a stack makes of its own machine: an agent on the loopback, beside the services.

The agent is that of every other node. Only the way in is shorter: who starts a stack is its
operator, and gives the node its identity directly, without a gateway in between.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from berth_agent.linux import files
from berth_agent.linux.clocks import wall_ms
from berth_agent.node.credentials import identity as identities
from berth_agent.node.credentials.identity import Identity, NoIdentity
from berth_agent.node.system import machine
from infra.machine.folders import make_own
from infra.machine.process import tied
from infra.supervisor import control
from infra.supervisor.configuration import Program
from infra.supervisor.listening import LOOPBACK, Listen
from infra.supervisor.running import RunningStack
from infra.supervisor.stack import AGENT, AGENT_EXECUTOR
from shared.contracts.enrolment import CreateNodeToken, EnrollNode
from shared.contracts.keys import hash_secret

TOKEN_S = 600
ASSUMED_LIFE_MS = 24 * 3600 * 1000
"""Life of a credential until the first renewal, which is due halfway, says how long it is."""
STOP_WAIT_S = 20
"""Longer than the agent waits for workers that are stopped with it."""


@dataclass(frozen=True, slots=True)
class LocalNode:
    """The offer of this machine to a pool; `settings` are further ones of the agent."""

    pool: str
    gpu_type: str
    gpus: int
    cpus: float
    mem_gib: float
    settings: Mapping[str, Any] = field(default_factory=dict)


def prepare(stack: RunningStack, node: LocalNode) -> None:
    """Make the folders and write the configuration of the agent."""
    run = _run_of(stack)
    for folder in (stack.agent, run, stack.work):
        make_own(folder, 0o711)
    settings: dict[str, Any] = {
        "state": str(stack.agent),
        "run": str(run),
        "work": str(stack.work),
        "gpu_type": node.gpu_type,
        "gpus": node.gpus,
        "cpus": node.cpus,
        "mem_gib": node.mem_gib,
        # The groups of an agent are made below its own, which here is that of the user's session.
        "cgroups": False,
        # With an embedded broker all is forgotten that would find a worker again.
        "keep_workers": stack.durable,
        **node.settings,
    }
    # A scalar of JSON is one of TOML.
    lines = (f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
    files.write_atomic(_config(stack), "".join(lines).encode())


def agent_program(stack: RunningStack) -> Program:
    """Return the supervised process; a stop of it ends no worker, unless the broker forgets."""
    command = [sys.executable, "-P", "-m", "berth_agent", "--config", _config(stack), "run"]
    return Program(AGENT, [*tied("TERM"), *command], stop_wait_s=STOP_WAIT_S)


def start_agent(stack: RunningStack) -> None:
    """Start the agent, which finds this stack's executor and CA in its identity."""
    identity = identities.read_identity(str(stack.agent))
    identities.write_identity(str(stack.agent), with_present_addresses(stack, identity))
    control.start(stack.data_dir, AGENT)


def has_identity(stack: RunningStack) -> bool:
    try:
        identities.read_identity(str(stack.agent))
    except NoIdentity:
        return False
    return True


def new_identity(stack: RunningStack, pool: str) -> tuple[Identity, CreateNodeToken, EnrollNode]:
    """Return an identity, and the two commands that enrol it.

    The name is that of the data folder: two stacks on one machine have two names, and a stack that
    begins anew, as another installation, has the same one. So the node recognises by its name what
    an earlier stack left, and needs no mark.
    """
    folder = hashlib.sha256(str(stack.data_dir).encode()).hexdigest()
    node_id, secret = f"local-{folder[:8]}", secrets.token_hex(identities.SECRET_BYTES)
    token_id = f"{node_id}-{secrets.token_hex(4)}"
    token = CreateNodeToken(
        token_id=token_id,
        sha256=hash_secret(secrets.token_urlsafe(32)),
        pool=pool,
        ttl_s=TOKEN_S,
        max_uses=1,
        approve=True,
    )
    enrolment = EnrollNode(
        node_id=node_id,
        token_id=token_id,
        credential_sha256=hash_secret(secret),
        hardware=machine.hardware(),
    )
    identity = Identity(
        node_id=node_id,
        pool=pool,
        secret=secret,
        gateway="",
        executors=(),
        expires_at=wall_ms() + ASSUMED_LIFE_MS,
        approved=True,
        ca="",
    )
    return with_present_addresses(stack, identity), token, enrolment


def store_identity(stack: RunningStack, identity: Identity) -> None:
    """Store an identity that access knows."""
    identities.write_identity(str(stack.agent), identity)


def status(stack: RunningStack) -> dict[str, Any]:
    """Return the state that the agent shows; empty before its first tick."""
    return files.read_json(f"{_run_of(stack)}/status.json") or {}


def is_ready(stack: RunningStack, pid: int) -> bool:
    """Return whether this process of the agent serves its pool."""
    shown = status(stack)
    is_own = shown.get("pid") == pid
    return is_own and shown.get("state") == "active" and bool(shown.get("executor"))


def _run_of(stack: RunningStack) -> Path:
    assert stack.agent_run is not None, "this machine is no node of the stack"
    return stack.agent_run


def _config(stack: RunningStack) -> str:
    return str(stack.agent / "config.toml")


def with_present_addresses(stack: RunningStack, identity: Identity) -> Identity:
    """Return the identity with the present addresses: ports differ from start to start."""
    host = Listen(stack.host or LOOPBACK)
    ca = stack.ca.read_text(encoding="ascii") if stack.tls and stack.ca else ""
    executors = (host.url(stack.ports[AGENT_EXECUTOR]["http"], stack.tls),)
    return replace(identity, gateway=stack.gateway, executors=executors, ca=ca, has_own_name=True)
