"""Which installation is meant, and who may read its key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.api.target import Target, key_of, store_key, target
from cli.errors import Unreachable


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("BERTH_URL", "BERTH_KEY", "BERTH_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def test_an_address_in_the_environment_goes_before_a_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_URL", "http://far:1")
    monkeypatch.setenv("BERTH_KEY", "a.b")
    assert target(None) == Target("http://far:1", "a.b")


def test_a_named_folder_goes_before_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BERTH_URL", "http://far:1")
    (tmp_path / "stack.json").write_text(json.dumps({"gateway": "http://near:1"}))
    store_key(tmp_path, "c.d")
    assert target(tmp_path) == Target("http://near:1", "c.d", folder=tmp_path)


def test_no_stack_is_not_reachable(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="berth up`, name its folder with --data or BERTH_HOME"):
        target(tmp_path)


def test_a_key_is_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "operator.key").write_text("old")
    path = store_key(tmp_path, "a.b")
    assert path.stat().st_mode & 0o777 == 0o600
    assert key_of(tmp_path) == "a.b"
