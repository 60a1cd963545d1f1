"""Zipkin's server: a jar from Maven that keeps spans in memory."""

from __future__ import annotations

import urllib.request
from pathlib import Path

from infra.machine import maven

ARTIFACT = "io.zipkin:zipkin-server:3.6.1:jar:exec"
HEAP_MIB = 256
SPANS_MOST = 100_000
LOOK_S = 2.0


def jar() -> Path:
    """Return the path of the jar."""
    _, name, version, kind, classifier = ARTIFACT.split(":")
    return maven.cache_dir("jars") / f"{name}-{version}-{classifier}.{kind}"


def missing() -> str:
    """Return what is missing to run Zipkin here, empty if nothing is."""
    return maven.missing(jar())


def fetch() -> Path:
    """Fetch the jar (135 MB) and return its path. Raises DidNotStart."""
    fetched = jar()
    if not fetched.exists():
        fetched.parent.mkdir(parents=True, exist_ok=True)
        copy = ("dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={fetched.parent}")
        maven.run_tool(["mvn", "-q", "-B", *copy])
    return fetched


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
