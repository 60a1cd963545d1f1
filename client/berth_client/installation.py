"""The installation that is meant: an address and a key, or a local stack."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from berth_client.errors import BerthError

DATA = Path(".berth")
DEMO_DATA = DATA / "demo"
SIMULATION_DATA = DATA / "simulation"
STACK_FILE = "stack.json"
KEY_FILE = "operator.key"
URL, KEY, CA, DATA_VARIABLE = "BERTH_URL", "BERTH_KEY", "BERTH_CA", "BERTH_HOME"
NO_STACK, BAD_FILE = "no_stack", "bad_file"


@dataclass(frozen=True, slots=True)
class InstallationAddress:
    """Address and key of an API (empty if unknown), and a file of additional certificate
    authorities; `folder` is that of a local stack."""

    url: str
    key: str
    ca: str = ""
    folder: Path | None = None


def find_installation(folder: Path | None = None) -> InstallationAddress:
    """Return the installation of `BERTH_URL` and `BERTH_KEY`, else that of the stack in the folder.

    A folder that was not named may come with the files of others, such as a cloned repository: no
    key is sent from there to another machine.

    Raises BerthError `no_stack` and `bad_file`.
    """
    url, ca = os.environ.get(URL, "") if folder is None else "", os.environ.get(CA, "")
    if url:
        return InstallationAddress(url, os.environ.get(KEY, ""), ca)
    is_named = folder is not None or bool(os.environ.get(DATA_VARIABLE))
    folder = stack_folder(folder)
    gateway = gateway_of(folder)
    if not is_named and not is_of_this_machine(gateway):
        detail = (
            f"{folder / STACK_FILE}: gateway: {gateway!r}; must be an address of this machine: "
            f"name the folder with --data or {DATA_VARIABLE} if it is yours, or set {URL}"
        )
        raise BerthError(0, BAD_FILE, detail)
    key = os.environ.get(KEY, "") or key_of(folder)
    return InstallationAddress(gateway, key, ca or str(read_stack(folder).get("ca") or ""), folder)


def stack_folder(named: Path | None) -> Path:
    """Return the named folder, else that of the stack that answers: a stack, a demo or an opened
    simulation."""
    if named is not None:
        return named
    if home := os.environ.get(DATA_VARIABLE):
        return Path(home)
    running = (folder for folder in (DATA, DEMO_DATA, SIMULATION_DATA) if _answers(folder))
    return next(running, DATA)


def gateway_of(folder: Path) -> str:
    """Return the gateway address of the stack in this folder. Raises BerthError."""
    try:
        return str(read_stack(folder)["gateway"])
    except FileNotFoundError:
        detail = (
            f"no stack in {folder}: start one with `berth up`, name its folder with --data or "
            f"{DATA_VARIABLE}, or set {URL} and {KEY}"
        )
        raise BerthError(0, NO_STACK, detail) from None
    except (OSError, ValueError, KeyError) as error:
        detail = f"{folder / STACK_FILE} cannot be read: {error}"
        raise BerthError(0, BAD_FILE, detail) from None


def key_of(folder: Path) -> str:
    """Return the key in the folder of a stack, empty without one. Raises BerthError."""
    path = folder / KEY_FILE
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise BerthError(0, BAD_FILE, f"{path}: {error.strerror}") from None


def read_stack(folder: Path) -> Mapping[str, object]:
    """Return the description of the stack in this folder. Raises OSError and ValueError."""
    described = json.loads((folder / STACK_FILE).read_text())
    if not isinstance(described, dict):
        raise ValueError("not a JSON object")
    return described


def is_of_this_machine(url: str) -> bool:
    """Return whether the host of an address is an IP address of this machine, or `localhost`."""
    try:
        host = urlsplit(url).hostname or ""
        if host == "localhost":
            return True
        family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
        with socket.socket(family) as probe:
            probe.bind((host, 0))
    except (OSError, ValueError):
        return False
    return True


def _answers(folder: Path) -> bool:
    try:
        gateway = str(read_stack(folder)["gateway"])
        address = urlsplit(gateway)
    except (OSError, ValueError, KeyError):
        return False
    if not is_of_this_machine(gateway):
        return False
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((address.hostname or "", address.port or 80)) == 0
