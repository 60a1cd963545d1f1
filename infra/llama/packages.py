"""llama.cpp's server as Debian's unstable release has it, extracted into the user's cache.

Nothing is installed: a package manager with a state of its own fetches the server and what it
needs, its C library too. The version is the one that the release has on that day.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from infra.machine.maven import cache_dir

PACKAGE = "llama.cpp-tools"
RELEASE = "sid"
SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
FETCH_S = 600.0


class LlamaMissing(Exception):
    """The engine cannot be had here; the text says why."""


def fetch() -> Path:
    """Return the root of what was extracted, on first use. Raises LlamaMissing."""
    cache = cache_dir("llama-server")
    if cache.is_dir():
        return cache
    _check_machine()
    cache.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.parent) as scratch:
        root = Path(scratch) / "root"
        for package in _download(Path(scratch)):
            _run(["dpkg", "-x", str(package), str(root)])
        try:
            root.rename(cache)
        except OSError:
            # Another process was faster.
            if not cache.is_dir():
                raise
    return cache


def _check_machine() -> None:
    if platform.machine() != "x86_64":
        raise LlamaMissing(f"{PACKAGE}: only tried on x86_64")
    if shutil.which("apt-get") is None or not SOURCES.is_file():
        raise LlamaMissing(f"{PACKAGE}: a Debian machine with {SOURCES} is required")


def _download(scratch: Path) -> list[Path]:
    """Fetch the packages below `scratch` and return their files."""
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (scratch / folder).mkdir(parents=True)
    (scratch / "status").touch()
    (scratch / "sources.list").write_text(_source_line(SOURCES.read_text()))
    options = {
        "Dir::State": scratch / "state",
        "Dir::State::status": scratch / "status",
        "Dir::Cache": scratch / "cache",
        "Dir::Etc::sourcelist": scratch / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        # As root it would read as another user, who may not enter the folder.
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-q", *(f"-o{name}={value}" for name, value in options.items())]
    _run([*apt, "update"])
    _run([*apt, "install", "-y", "--no-install-recommends", "--download-only", PACKAGE])
    return sorted((scratch / "cache/archives").glob("*.deb"))


def _source_line(text: str) -> str:
    """Return the line of the unstable release at the address of the machine's own."""
    fields = dict(line.partition(": ")[::2] for line in reversed(text.splitlines()))
    if "URIs" not in fields or "Signed-By" not in fields:
        raise LlamaMissing(f"{SOURCES}: URIs and Signed-By are required")
    return f"deb [signed-by={fields['Signed-By']}] {fields['URIs'].split()[0]} {RELEASE} main\n"


def _run(command: Sequence[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=FETCH_S, text=True)
    except (OSError, subprocess.SubprocessError) as error:
        lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise LlamaMissing(f"{PACKAGE} cannot be fetched: {lines[-1]}") from None
