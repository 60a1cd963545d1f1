"""Each bound is listed with its default and its meaning."""

from __future__ import annotations

import json

import pytest

from cli.text.bounds import show_bounds
from shared.contracts.bounds import TenantBounds, UserBounds


def test_bounds_are_rows_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    show_bounds(UserBounds, as_json=False)
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["BOUND", "DEFAULT", "MEANING"]
    assert [row.split()[0] for row in rows] == list(UserBounds.model_fields)
    show_bounds(TenantBounds, as_json=True)
    listed = {row["bound"]: row["default"] for row in json.loads(capsys.readouterr().out)}
    assert listed["highest_class"] == "high" and listed["users"] == "any"
