"""Zipkin's server: one jar from Maven, spans in memory, its own page."""

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
    """Where the jar is kept between runs."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "berth" / "jars"


def jar() -> Path:
    """Where the jar lies once it was fetched."""
    _, name, version, kind, classifier = ARTIFACT.split(":")
    return cache_dir() / f"{name}-{version}-{classifier}.{kind}"


def missing() -> str:
    """What this machine lacks to run Zipkin, or nothing."""
    if not shutil.which("java"):
        return "Java 17 or later is not installed"
    if not jar().exists() and not shutil.which("mvn"):
        return "Maven is not installed"
    return ""


def fetch() -> Path:
    """The jar, 135 MB; DidNotStart where Maven has none. An interrupted download leaves nothing."""
    found = jar()
    if not found.exists():
        found.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [
                "mvn",
                "-q",
                "-B",
                "dependency:copy",
                f"-Dartifact={ARTIFACT}",
                f"-DoutputDirectory={found.parent}",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise DidNotStart(f"mvn: {(done.stdout + done.stderr).strip()}")
    return found


def command(file: Path, host: str, port: int) -> list[str]:
    """How the server is run; `--server.address` would not bind it to the loopback."""
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
    """Where it takes spans."""
    return f"http://127.0.0.1:{port}/api/v2/spans"


def is_ready(port: int) -> bool:
    """Does it answer?"""
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=LOOK_S).close()
    except OSError:
        return False
    return True
