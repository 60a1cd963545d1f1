"""`berth usage` prints hours, mean waits and cost of a group, and names a wrong day."""

from __future__ import annotations

import json
from typing import Any, TypeVar, cast

import pytest

import cli.commands.usage as verb
from berth_client.calls import Call
from cli.api.http import Api
from cli.errors import BadInput
from cli.text.times import DAY_MS, now_ms

DAY = 1_764_201_600_000
ROW = {
    "tenant": "ada",
    "user": "",
    "day_at": DAY,
    "gpu_ms": 5_400_000,
    "starts": 2,
    "waited_ms": 3000,
    "succeeded": 1,
    "failed": 0,
    "cancelled": 1,
    "preempted": 0,
    "cost": 3.7512,
}

POOLS = [
    {"pool": "demo", "settings": {"backends": ["virtual"]}},
    {"pool": "gpu", "settings": {"backends": ["agent"]}},
    {"pool": "mixed", "settings": {"backends": ["agent", "virtual"]}},
]

T = TypeVar("T")


class UsageApi(Api):
    """Has `days` rows, in pages of three."""

    def __init__(self) -> None:
        self.days = 1
        self.pool = "gpu"
        self.query: dict[str, Any] = {}

    def send(self, call: Call[T]) -> T:
        if call.path == "/v1/pools":
            return cast("T", {"items": POOLS})
        assert call.path == "/v1/usage"
        self.query = dict(call.query)
        begin = int(self.query.get("after") or 0)
        size = min(self.query["limit"], 3)
        rows = [{**ROW, "pool": self.pool}] * min(size, self.days - begin)
        end = begin + size
        return cast("T", {"items": rows, "next": str(end) if end < self.days else None})


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> UsageApi:
    api = UsageApi()
    monkeypatch.setattr(verb, "api", lambda data: api)
    return api


def test_a_group_is_a_line(api: UsageApi, capsys: pytest.CaptureFixture[str]) -> None:
    verb.usage(by="user", since="2025-11-27", until="2025-11-28")
    head, line = (row.split() for row in capsys.readouterr().out.splitlines())
    assert head[:4] == ["TENANT", "USER", "GPU", "HOURS"]
    assert line == ["ada", "-", "1.50", "1.5", "s", "2", "1", "0", "1", "0", "3.75"]
    assert (api.query["since"], api.query["until"]) == (DAY, DAY + DAY_MS)
    verb.usage(by="day")
    assert "2025-11-27" in capsys.readouterr().out
    begin = now_ms() - now_ms() % DAY_MS
    assert begin - api.query["since"] in (29 * DAY_MS, 30 * DAY_MS, 31 * DAY_MS)


@pytest.mark.parametrize(
    ("pool", "shown"),
    [("demo", "demo (virtual)"), ("gpu", "gpu"), ("mixed", "mixed (virtual in part)")],
)
def test_simulated_hours_are_marked(
    api: UsageApi, capsys: pytest.CaptureFixture[str], pool: str, shown: str
) -> None:
    api.pool = pool
    verb.usage(by="pool")
    assert capsys.readouterr().out.splitlines()[1].split("  ")[0] == shown
    verb.usage(by="pool", as_json=True)
    assert json.loads(capsys.readouterr().out)[0]["pool"] == pool


def test_all_groups_up_to_the_limit_are_shown(
    api: UsageApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.days = 8
    for limit, shown in ((7, 7), (2000, 8)):
        verb.usage(by="day", limit=limit, as_json=True)
        assert len(json.loads(capsys.readouterr().out)) == shown


@pytest.mark.parametrize("day", ["2026-02-30", "yesterday", "0d"])
def test_a_wrong_day_is_named_with_the_rule(api: UsageApi, day: str) -> None:
    with pytest.raises(BadInput, match=rf"--until: '{day}'.*2026-11-01.*30d"):
        verb.usage(until=day)
