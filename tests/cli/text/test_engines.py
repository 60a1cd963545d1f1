"""Engines are shown with their state, since when, and the loads that they report."""

from __future__ import annotations

import pytest

from cli.text import engines as texts
from cli.text.engines import away_text, engine_cells, serving_text

SERVING = {"name": "a", "available": True, "reason": "", "since": 0}
AWAY = {"name": "b", "available": False, "reason": "health: status 503", "since": 0}
LOAD = {"in_flight": 3, "waiting": 0, "kv_ratio": 0.254}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "age_ms", lambda at: 90_000)


def test_each_engine_has_its_state_and_its_load() -> None:
    endpoint = {"endpoint": "chat", "engines": [{**SERVING, **LOAD}, AWAY]}
    assert list(engine_cells(endpoint)) == [
        ("a", "serving", "1 min 30 s", 3, 0, "25%"),
        ("b", "away: health: status 503", "1 min 30 s", None, None, None),
    ]
    assert serving_text(endpoint) == "1 of 2"
    assert away_text(endpoint) == ""


def test_an_endpoint_without_a_serving_engine_says_why() -> None:
    assert away_text({"endpoint": "chat", "engines": [AWAY]}) == (
        "no engine of chat can serve: b: health: status 503 for 1 min 30 s"
    )
    assert away_text({"endpoint": "chat", "engines": []}) == ""
    assert serving_text({"endpoint": "chat"}) == "0 of 0"
