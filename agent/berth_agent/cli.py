"""The command `berth-agent`: join, run, status, leave."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from berth_agent import VERSION
from berth_agent.linux import files
from berth_agent.node import config as settings
from berth_agent.node import identity, machine, run, status
from berth_agent.node.config import Config, ConfigError
from berth_agent.node.http import RequestFailed, parse_address
from berth_agent.node.passage import make_passable

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
    "uid_first": (int, "first uid of tenants, one each; 0: the agent's own"),
}
PROBLEMS = (identity.NoIdentity, run.AlreadyRunning, RequestFailed, ValueError, OSError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; a problem is one line, never a traceback."""
    options = _parser().parse_args(arguments)
    flags = {name: getattr(options, name, None) for name in (*FLAGS, *NUMBERS)}
    try:
        config = settings.load(options.config, flags)
        code: int = options.command(config, options)
    except PROBLEMS as error:
        _print(f"berth-agent: {error}", sys.stderr)
        return 1
    return code


def _join(config: Config, options: argparse.Namespace) -> int:
    parse_address(options.url)
    token = options.token or _read_token(options.token_file)
    node_id = options.node_id or socket.gethostname().split(".")[0].lower()
    make_passable(config.state)
    if os.path.exists(f"{config.state}/identity.json") and not options.again:
        raise ConfigError(f"{config.state}: has an identity; --again replaces it")
    executors = tuple(options.executor or ())
    for url in executors:
        parse_address(url)
    joined = identity.join(
        options.url, token, node_id, machine.hardware(), options.ca or "", executors
    )
    identity.write_identity(config.state, joined)
    rest = "" if joined.approved else "; an operator has to run `berth nodes approve`"
    _print(f"Joined pool {joined.pool} as {joined.node_id}{rest}.")
    if files.is_locked(f"{config.state}/lock"):
        _print(
            "The running agent has the old identity: restart it (systemctl restart berth-agent)."
        )
    return 0


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
    running = files.is_locked(f"{config.state}/lock")
    document = status.read(config.run)
    if document is None:
        _print("not running" if not running else "starting")
        return 3
    if options.json:
        _print(json.dumps({**document, "running": running}))
    else:
        _print(status.render(document, running=running))
    return 0 if running else 3


def _leave(config: Config, options: argparse.Namespace) -> int:
    path = f"{config.state}/{run.LEAVE_FILE}"
    if options.cancel:
        files.write_durable(path, b"cancel")
        _print("The node takes work again.")
    else:
        files.write_durable(path, b"now" if options.now else b"drain")
        _print("The node takes no more work, and leaves when its last worker has ended.")
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
    join.add_argument("--node-id", help="name of the node (default: host name)")
    join.add_argument("--ca", help="PEM file of the installation's CA")
    join.add_argument(
        "--executor",
        action="append",
        help="URL of an executor, instead of those that the gateway names",
    )
    join.add_argument("--again", action="store_true", help="replace the present identity")
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
