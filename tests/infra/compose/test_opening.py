"""A pool that exists keeps its settings at a further start."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.compose import opening
from infra.supervisor.running import RunningStack
from shared.contracts.pools import PoolSettings

LOCAL: dict[str, object] = {"pool": "local", "backends": ["agent"], "stop_after_s": 60}
STACK = RunningStack(
    data_dir=Path("/d"),
    broker="kafka",
    partitions=16,
    kafka="",
    postgres="",
    gateway="",
    llm="",
    otlp="",
    state=Path("/d"),
    work=Path("/d"),
    ports={},
)


def posted(monkeypatch: pytest.MonkeyPatch, *rows: dict[str, object]) -> list[object]:
    """Return the pools that are created where the API lists these."""
    bodies: list[object] = []

    def send(stack: object, key: str, method: str, path: str, body: object = None) -> object:
        if method == "POST":
            bodies.append(body)
            return 202, {}
        return 200, {"items": list(rows)}

    monkeypatch.setattr(opening, "send_request", send)
    opening.configure(STACK, "key", LOCAL)
    return bodies


def row(*backends: str) -> dict[str, object]:
    """Return a pool as `GET /v1/pools` lists it."""
    return {
        "pool": "local",
        "settings": PoolSettings(pool="local").model_dump() | {"backends": [*backends]},
    }


def test_a_pool_that_exists_keeps_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert posted(monkeypatch, row("agent")) == []


def test_a_missing_pool_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    assert posted(monkeypatch) == [LOCAL]


def test_a_pool_of_an_early_release_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert posted(monkeypatch, row("process")) == [LOCAL]
