"""First-time setup of a stack on this machine: inventories, the operator key, pools."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cli.api.http import Api
from cli.api.target import Target, key_of, store_key
from infra.broker.topics import create
from infra.supervisor.running import RunningStack
from shared.contracts.access import CreateKey, RegisterTenant
from shared.contracts.base import Command
from shared.contracts.keys import format_key, hash_secret
from shared.contracts.pools import ConfigurePool
from shared.contracts.topics import tenant_topics

if TYPE_CHECKING:
    # Containers have no supervisor installed.
    from infra.supervisor.launch import StackOptions
    from infra.supervisor.local_node import LocalNode

VIRTUAL = "executor-virtual"
FIRST = ("access",)
"""Services that must be ready before pools and keys can be created."""

Inventories = Mapping[str, Mapping[str, object]]


def with_nodes(
    options: StackOptions, inventories: Inventories, node: LocalNode | None = None
) -> StackOptions:
    """Write the inventory of each executor to the data directory and point the executor to it.

    With `node` this machine is a node too.
    """
    folder = options.data_dir.resolve()
    folder.mkdir(parents=True, exist_ok=True, mode=0o711)
    env = {name: dict(values) for name, values in options.env.items()}
    for executor, inventory in inventories.items():
        path = folder / f"{executor}.json"
        path.write_text(json.dumps(inventory, indent=2) + "\n")
        env.setdefault(executor, {})["BERTH_NODES"] = str(path)
    return replace(options, env=env, awaited=FIRST, node=node)


def open_up(
    stack: RunningStack,
    pools: Sequence[ConfigurePool],
    tenants: Sequence[str],
    node: LocalNode | None = None,
) -> str:
    """Create pools and tenants and return the operator key; the first pool is the default.

    The agent of `node` starts once access knows it.
    """
    from cli.stack.local_node import admit

    # The embedded broker keeps no keys over a restart; a durable one keeps pools too.
    key = key_of(stack.data_dir) if stack.durable else ""
    commands: list[Command] = []
    if not key:
        key, command = new_key("operator")
        default = pools[0].pool
        registered = [RegisterTenant(tenant=name, default_pool=default) for name in tenants]
        commands = [command, *pools, *registered]
        make_topics(stack, tenants)
    admit(stack, commands, node)
    store_key(stack.data_dir, key)
    return key


def own_api(stack: RunningStack) -> Api:
    """Return a client of this stack's gateway, regardless of BERTH_URL and BERTH_KEY."""
    return Api(Target(stack.gateway, key_of(stack.data_dir), str(stack.ca or "")))


def new_key(name: str) -> tuple[str, CreateKey]:
    """Return a new admin key and the command that registers its hash."""
    key_id, secret = f"{name}-{secrets.token_hex(4)}", secrets.token_urlsafe(32)
    return format_key(key_id, secret), CreateKey(
        key_id=key_id, sha256=hash_secret(secret), role="admin"
    )


def make_topics(stack: RunningStack, tenants: Sequence[str]) -> list[str]:
    """Create the missing topics of the tenants; return their names."""
    specs = [spec for name in tenants for spec in tenant_topics(name)]
    return (
        create(stack.connection("admin"), stack.partitions, stack.durable, specs) if specs else []
    )
