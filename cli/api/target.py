"""The installation that a command talks to: a local stack, or an address and a key."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from cli.errors import BadInput, Unreachable

DATA = Path(".berth")
DEMO_DATA = DATA / "demo"
SIMULATION_DATA = DATA / "simulation"
STACK_FILE = "stack.json"
KEY_FILE = "operator.key"
URL, KEY, CA, DATA_VARIABLE = "BERTH_URL", "BERTH_KEY", "BERTH_CA", "BERTH_HOME"


@dataclass(frozen=True, slots=True)
class Target:
    """Address and key of an API (empty if unknown), and a file of additional certificate
    authorities; `folder` is that of a local stack."""

    url: str
    key: str
    ca: str = ""
    folder: Path | None = None


def target(data: Path | None) -> Target:
    """Return the target from `BERTH_URL` and `BERTH_KEY`, else from the stack's files."""
    url, ca = os.environ.get(URL, "") if data is None else "", os.environ.get(CA, "")
    if url:
        return Target(url, os.environ.get(KEY, ""), ca)
    folder = data_dir(data)
    key = os.environ.get(KEY, "") or key_of(folder)
    return Target(gateway_of(folder), key, ca or _ca(folder), folder)


def data_dir(data: Path | None) -> Path:
    """Return the named data directory, else that of the stack that answers: a stack, a demo or
    an opened simulation."""
    if data is not None:
        return data
    if named := os.environ.get(DATA_VARIABLE):
        return Path(named)
    running = (folder for folder in (DATA, DEMO_DATA, SIMULATION_DATA) if _answers(folder))
    return next(running, DATA)


def no_stack(folder: Path) -> str:
    """Return the text about a folder in which no stack runs."""
    return f"no stack is running in {folder}; `berth up` starts one"


def gateway_of(folder: Path) -> str:
    """Return the gateway address of the stack in this directory."""
    try:
        return str(_stack(folder)["gateway"])
    except FileNotFoundError:
        raise Unreachable(
            f"no stack in {folder}: start one with `berth up`, name its folder with --data or "
            f"{DATA_VARIABLE}, or set {URL} and {KEY}"
        ) from None
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(f"{folder / STACK_FILE} cannot be read: {error}") from None


def _ca(folder: Path) -> str:
    """Return the file of the stack's certificate authority, empty if it has none."""
    return str(_stack(folder).get("ca") or "")


def key_of(folder: Path) -> str:
    path = folder / KEY_FILE
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None


def store_key(folder: Path, key: str) -> Path:
    """Store the key in a file of mode 0600."""
    path = folder / KEY_FILE
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(key + "\n")
    return path


def is_in_memory(data: Path | None) -> bool:
    """Return whether the target is a local stack that keeps its data in memory alone."""
    if data is None and os.environ.get(URL):
        return False
    try:
        return _stack(data_dir(data)).get("broker") == "embedded"
    except (OSError, ValueError):
        return False


def _stack(folder: Path) -> dict[str, object]:
    return cast("dict[str, object]", json.loads((folder / STACK_FILE).read_text()))


def _answers(folder: Path) -> bool:
    try:
        address = urlsplit(str(_stack(folder)["gateway"]))
    except (OSError, ValueError, KeyError):
        return False
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((address.hostname or "", address.port or 80)) == 0
