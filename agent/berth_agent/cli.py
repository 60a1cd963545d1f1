"""The command `berth-agent`: join, addresses, run, status, leave."""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from berth_agent import VERSION, file_names
from berth_agent.core.gpu_inventory import differences
from berth_agent.linux import files
from berth_agent.linux.clocks import boot_ms, wall_ms
from berth_agent.linux.nvml import Nvml
from berth_agent.node import config as settings
from berth_agent.node import run, status
from berth_agent.node.config import Config, ConfigError
from berth_agent.node.connection.http import RequestFailed, parse_address
from berth_agent.node.credentials import claim, identity, trust
from berth_agent.node.files.folder_access import make_passable
from berth_agent.node.system import machine

FLAGS = {
    "state": "state folder",
    "run": "folder of run-time files",
    "gpu_type": "GPU type",
    "rack": "rack",
    "address": "address of this node for other nodes",
    "prolog": "executable before each worker",
    "epilog": "executable after each worker",
}
NUMBERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "gpus": (int, "GPUs, in devices"),
    "cpus": (float, "CPU cores"),
    "mem_gib": (float, "memory, GiB"),
    "uid_first": (int, "uid of the first tenant, others by their number; 0: the agent's own"),
}
NOT_JOINED = "this machine has not joined: run `berth-agent join`"
LONGEST_NODE_ID = 63
NODE_ID = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")
PROBLEMS = (
    identity.NoIdentity,
    run.AlreadyRunning,
    claim.IdentityInUse,
    RequestFailed,
    ValueError,
    OSError,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; a problem is one line, never a traceback."""
    options = _parser().parse_args(arguments)
    flags = {name: getattr(options, name, None) for name in (*FLAGS, *NUMBERS)}
    try:
        config = settings.load(options.config, flags)
        code: int = options.command(config, options)
    except PROBLEMS as error:
        is_full = isinstance(error, OSError) and error.errno in files.FULL
        remedy = "; make room on its disk, then run the command again" if is_full else ""
        _print(f"berth-agent: {error}{remedy}", sys.stderr)
        return 1
    return code


def _join(config: Config, options: argparse.Namespace) -> int:
    parse_address(options.url)
    token = options.token or _read_token(options.token_file)
    node_id = _node_id(config, options)
    make_passable(config.state)
    if os.path.exists(f"{config.state}/{file_names.IDENTITY}") and not options.again:
        raise ConfigError(f"{config.state}: has an identity; --again replaces it")
    executors = tuple(options.executor or ())
    _check_addresses(executors)
    _check_gpus(config)
    joined = identity.join(
        config.state, options.url, token, node_id, machine.hardware(), options.ca or "", executors
    )
    # A node that had left, and joins, takes work again.
    Path(config.state, file_names.LEAVE).unlink(missing_ok=True)
    approve = f"; it works once an operator has run `berth nodes approve {joined.node_id}`"
    rest = "" if joined.approved else approve
    _print(f"Joined pool {joined.pool} as {joined.node_id}{rest}.")
    _print_restart_hint(config, "identity")
    return 0


def _node_id(config: Config, options: argparse.Namespace) -> str:
    """Return the name to join by: a node that joins again keeps its own. Raises ValueError."""
    source, node_id = "--node-id", options.node_id
    if node_id is None and options.again:
        try:
            return identity.read_identity(config.state).node_id
        except identity.NoIdentity:
            node_id = None
    if node_id is None:
        source = "host name (--node-id names another)"
        node_id = socket.gethostname().split(".")[0].lower()
    if len(node_id) > LONGEST_NODE_ID or not NODE_ID.fullmatch(node_id):
        raise ValueError(
            f"{source}: {node_id[:80]!r}; {LONGEST_NODE_ID} characters of a-z, 0-9, '.', '_' and"
            " '-' are allowed, a letter or digit first and last"
        )
    return str(node_id)


def _check_gpus(config: Config) -> None:
    """Refuse GPUs that are not those that the node declares. Raises ConfigError."""
    listed = Nvml().readings()
    if listed and (
        differing := "; ".join(
            differences(config.gpus, config.gpu_type, config.unusable_gpus, listed)
        )
    ):
        raise ConfigError(f"{differing}; let the settings of the agent say what the node has")


def _addresses(config: Config, options: argparse.Namespace) -> int:
    """Change the addresses and the CA of the control plane, or show the addresses."""
    present = identity.read_identity(config.state)
    executors = tuple(options.executor or ())
    _check_addresses((*executors, *filter(None, [options.gateway])))
    changed = replace(
        present,
        gateway=options.gateway or present.gateway,
        executors=executors or present.executors,
        has_own_executors=bool(executors) or present.has_own_executors,
        ca=trust.read(options.ca) if options.ca else present.ca,
    )
    if changed != present:
        identity.write_identity(config.state, changed)
        _print_restart_hint(config, "addresses")
    _print(f"gateway     {changed.gateway}")
    for url in changed.executors:
        _print(f"executor    {url}")
    return 0


def _check_addresses(urls: Sequence[str]) -> None:
    """Raise ValueError for an address that is none."""
    for url in urls:
        parse_address(url)


def _print_restart_hint(config: Config, of: str) -> None:
    if files.is_locked(f"{config.state}/{file_names.LOCK}"):
        _print(f"The running agent has the old {of}: restart it (systemctl restart berth-agent).")


def _read_token(path: str) -> str:
    """Return the first line of the file. Raises ConfigError, OSError."""
    if path == "-":
        text = sys.stdin.readline()
    else:
        text, _, _ = Path(path).read_text(encoding="utf-8", errors="replace").partition("\n")
    if not text.strip():
        source = "standard input" if path == "-" else path
        raise ConfigError(f"{source}: no token in its first line; one is required")
    return text.strip()


def _run(config: Config, options: argparse.Namespace) -> int:
    return run.run(config)


def _status(config: Config, options: argparse.Namespace) -> int:
    running = files.is_locked(f"{config.state}/{file_names.LOCK}")
    document = status.read(config.run)
    if document is None:
        has_joined = os.path.exists(f"{config.state}/{file_names.IDENTITY}")
        stopped = "not running" if has_joined else NOT_JOINED
        _print("starting" if running else stopped)
        return 3
    shown = status.as_of_now(
        document,
        running=running,
        boot_id=machine.read_boot_id(),
        now_boot_ms=boot_ms(),
        now_ms=wall_ms(),
    )
    _print(json.dumps(shown) if options.json else status.render(shown))
    return 0 if running else 3


def _leave(config: Config, options: argparse.Namespace) -> int:
    path = f"{config.state}/{file_names.LEAVE}"
    if options.cancel:
        return _cancel_leave(config, path)
    files.write_durable(path, b"now" if options.now else b"drain")
    _print("The node takes no more work, and leaves when its last worker has ended.")
    return 0


def _cancel_leave(config: Config, path: str) -> int:
    """Take work again, unless the node has no session and its credential is refused meanwhile."""
    present = identity.read_identity(config.state)
    document = status.read(config.run)
    running = files.is_locked(f"{config.state}/{file_names.LOCK}")
    has_left = document is not None and document["state"] == "left"
    if (has_left or not running) and (refusal := identity.probe(present)) is not None:
        reason = "the node has left" if has_left else "the agent is not running"
        raise ConfigError(
            f"{reason}, and its credential is refused ({refusal}): join again with a"
            " new token, `berth-agent join URL --again`"
        )
    files.write_durable(path, b"cancel")
    if not running:
        _print("The node takes work again when its agent is started (systemctl start berth-agent).")
    elif has_left:
        _print("The node is to take work again; `berth-agent status` shows when it is active.")
    else:
        _print("The node takes work again.")
    return 0


def _print(text: str, stream: Any = None) -> None:
    (stream or sys.stdout).write(f"{text}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="berth-agent", description="Run jobs of Berth here.")
    parser.add_argument("--version", action="version", version=VERSION)
    parser.add_argument("--config", type=Path, help=f"TOML file (default {settings.DEFAULT_FILE})")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    join = _command(commands, "join", _join, "Join a pool with a token.")
    join.add_argument("url", help="URL of the gateway")
    token = join.add_mutually_exclusive_group()
    token.add_argument(
        "--token-file", default="-", help="file of the join token (default: -, standard input)"
    )
    token.add_argument("--token", help="join token; other users of the machine can read it there")
    join.add_argument(
        "--node-id",
        help="name of the node (default: the present one with --again, else the host name)",
    )
    join.add_argument("--ca", help="PEM file of the installation's CA")
    join.add_argument(
        "--executor",
        action="append",
        help="URL of an executor, instead of those that the gateway names",
    )
    join.add_argument("--again", action="store_true", help="replace the present identity")
    moved = _command(
        commands,
        "addresses",
        _addresses,
        "Show or change the addresses of the control plane and the CA of its servers.",
    )
    moved.add_argument("--gateway", help="URL of the gateway")
    moved.add_argument(
        "--executor", action="append", help="URL of an executor, instead of those that are named"
    )
    moved.add_argument("--ca", help="PEM file of the installation's CA, instead of the present one")
    _command(commands, "run", _run, "Run the agent until it is stopped; jobs go on.")
    shown = _command(commands, "status", _status, "Show the state of the agent.")
    shown.add_argument("--json", action="store_true", help="print JSON")
    leave = _command(commands, "leave", _leave, "Take the node out of service.")
    leave.add_argument("--now", action="store_true", help="stop running workers")
    leave.add_argument("--cancel", action="store_true", help="take work again")
    return parser


def _command(
    commands: Any, name: str, body: Callable[[Config, argparse.Namespace], int], text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(command=body)
    for flag, help_text in FLAGS.items():
        parser.add_argument(f"--{flag.replace('_', '-')}", help=help_text)
    for flag, (kind, help_text) in NUMBERS.items():
        parser.add_argument(f"--{flag.replace('_', '-')}", type=kind, help=help_text)
    return parser
