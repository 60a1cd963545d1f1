"""A server with the API of S3: moto's, in an environment of its own in the user's cache."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import tempfile
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.machine.maven import cache_dir
from infra.machine.process import free_ports, is_open, spawn

VERSION = "5.2.5"
"""Of moto: its dependencies do not go with those of Berth."""
START_S = 60.0


def fetch() -> Path:
    """Return the server's program; it is installed on first use."""
    cache = cache_dir(f"moto-{VERSION}-py{sys.version_info[0]}{sys.version_info[1]}")
    cache.parent.mkdir(parents=True, exist_ok=True)
    with (cache.parent / f"{cache.name}.lock").open("w") as lock:
        # Another worker may install it at this moment.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / "installed").exists():
            venv.create(cache, with_pip=True, clear=True)
            pip = [str(cache / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input"]
            subprocess.run([*pip, f"moto[server]=={VERSION}"], check=True)
            (cache / "installed").touch()
    return cache / "bin" / "moto_server"


@contextmanager
def running(bucket: str) -> Iterator[str]:
    """Run a server with an empty bucket; yield its endpoint."""
    (port,) = free_ports(1)
    endpoint = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        command = [str(fetch()), "-H", "127.0.0.1", "-p", str(port)]
        server = spawn("moto", command, Path(folder) / "log")
        try:
            server.wait_ready(lambda: is_open(port), START_S)
            put = urllib.request.Request(f"{endpoint}/{bucket}", data=b"", method="PUT")
            urllib.request.urlopen(put).close()
            yield endpoint
        finally:
            server.stop()
