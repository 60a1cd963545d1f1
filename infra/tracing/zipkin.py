"""Zipkin's server: a jar from Maven that keeps spans in memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import urllib.request
from pathlib import Path

from infra.machine.process import DidNotStart

ARTIFACT = "io.zipkin:zipkin-server:3.6.1:jar:exec"
HEAP_MIB = 256
SPANS_MOST = 100_000
LOOK_S = 2.0


def cache_dir() -> Path:
    """Return the cache directory of the jar."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "berth" / "jars"


def jar() -> Path:
    """Return the path of the jar."""
    _, name, version, kind, classifier = ARTIFACT.split(":")
    return cache_dir() / f"{name}-{version}-{classifier}.{kind}"


def missing() -> str:
    """Return what is missing to run Zipkin here, empty if nothing is."""
    if not shutil.which("java"):
        return "Java 17 or later is not installed"
    if not jar().exists() and not shutil.which("mvn"):
        return "Maven is not installed"
    return ""


def fetch() -> Path:
    """Fetch the jar (135 MB) and return its path. Raises DidNotStart."""
    path_found = jar()
    if not path_found.exists():
        path_found.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [
                "mvn",
                "-q",
                "-B",
                "dependency:copy",
                f"-Dartifact={ARTIFACT}",
                f"-DoutputDirectory={path_found.parent}",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise DidNotStart(f"mvn: {(done.stdout + done.stderr).strip()}")
    return path_found


def command(file: Path, host: str, port: int) -> list[str]:
    """Return the command of the server, bound to the loopback."""
    return [
        "java",
        f"-Xmx{HEAP_MIB}m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-jar",
        str(file),
        f"--armeria.ports[0].ip={host}",
        f"--armeria.ports[0].port={port}",
        "--armeria.ports[0].protocols[0]=http",
        f"--zipkin.storage.mem.max-spans={SPANS_MOST}",
        "--zipkin.query.lookback=604800000",
        "--logging.level.root=WARN",
    ]


def spans_url(port: int) -> str:
    """Return the address for spans."""
    return f"http://127.0.0.1:{port}/api/v2/spans"


def is_ready(port: int) -> bool:
    """Return whether the server answers."""
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=LOOK_S).close()
    except OSError:
        return False
    return True
