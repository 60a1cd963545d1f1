"""An emulated engine in a process of its own, for the endpoints of a stack under test."""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from infra.machine.process import free_ports, spawn
from tests.patience import PATIENCE_S


@contextmanager
def an_engine(model: str, log: Path, keys: Path | None = None) -> Iterator[str]:
    """Serve the model for the length of the block; yields its address.

    With `keys` it requires one of the keys in that file.
    """
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "cli", "engine", "--model", model, "--port", str(port)]
    guarded = [] if keys is None else ["--api-key-file", str(keys)]
    engine = spawn("engine", [*command, "--speed", "20", *guarded], log)
    try:
        engine.wait_ready(lambda: _answers(url), PATIENCE_S)
        yield url
    finally:
        engine.stop()


def _answers(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=1) as answer:
        return bool(answer.status == 200)
    return False
