"""The choice of an installation, and the accounts that may read its key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.api.target import Target, key_of, store_key, target
from cli.errors import BadInput, Unreachable


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


@pytest.mark.parametrize("gateway", ["http://far.test:1", "https://192.0.2.7:1", "nonsense", ""])
def test_a_present_folder_sends_the_key_to_no_other_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gateway: str
) -> None:
    (tmp_path / ".berth").mkdir()
    (tmp_path / ".berth" / "stack.json").write_text(json.dumps({"gateway": gateway}))
    monkeypatch.setenv("BERTH_KEY", "a.b")
    rule = "must be an address of this machine: name the folder with --data or BERTH_HOME"
    with pytest.raises(BadInput, match=rf"stack.json: gateway: '{gateway}'; {rule}"):
        target(None)
    assert target(tmp_path / ".berth").key == "a.b"
    monkeypatch.setenv("BERTH_HOME", str(tmp_path / ".berth"))
    assert target(None).url == gateway


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.9"])
def test_the_stack_of_this_machine_needs_no_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str
) -> None:
    (tmp_path / ".berth").mkdir()
    (tmp_path / ".berth" / "stack.json").write_text(json.dumps({"gateway": f"http://{host}:1"}))
    monkeypatch.setenv("BERTH_KEY", "a.b")
    assert target(None) == Target(f"http://{host}:1", "a.b", folder=Path(".berth"))


def test_no_stack_is_not_reachable(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="berth up`, name its folder with --data or BERTH_HOME"):
        target(tmp_path)


def test_a_key_is_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "operator.key").write_text("old")
    path = store_key(tmp_path, "a.b")
    assert path.stat().st_mode & 0o777 == 0o600
    assert key_of(tmp_path) == "a.b"
