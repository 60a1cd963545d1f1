"""The audit asks a real service for each locked package, and the bill of materials has them all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infra.security.supply_chain import (
    CLEAN,
    LOCKS,
    NOT_AUDITED,
    UNSAFE,
    audit,
    locked,
    rounds,
    sbom,
)
from tests.serving import Quiet, serving

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[3]
HASH = "--hash=sha256:" + "0" * 64
LOCK = (
    f"good==1.0 \\\n    {HASH}\nodd_name[extra]==2.5 ; python_version < '3' \\\n    {HASH}\n"
    f"odd_name==2.6 ; python_version >= '3' \\\n    {HASH}\n    # via good\n"
)
BAD = {
    "id": "OSV-1",
    "summary": "s",
    "details": "d",
    "modified": "2026-01-01T00:00:00Z",
    "published": "2026-01-01T00:00:00Z",
    "affected": [
        {
            "package": {"name": "odd-name", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "3.0"}]}],
        }
    ],
}


class Advisories(Quiet):
    """As OSV answers: nothing of most packages."""

    weak = ""
    status = 200

    def do_POST(self) -> None:
        asked = json.loads(self.received())
        response = {"vulns": [BAD]} if asked["package"]["name"] == self.weak else {}
        self.answer(self.status, json.dumps(response).encode())


@contextmanager
def advisories(weak: str = "", status: int = 200) -> Iterator[str]:
    kind = type("Told", (Advisories,), {"weak": weak, "status": status})
    with serving(kind) as url:
        yield f"{url}/v1/query"


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "some.lock"
    path.write_text(LOCK)
    return path


def test_a_lock_without_known_vulnerabilities_is_clean(
    lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with advisories() as service:
        assert audit([lock], service) == CLEAN
    assert "3 packages, 0 known vulnerabilities" in capsys.readouterr().out


def test_a_known_vulnerability_is_named(lock: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with advisories(weak="odd-name") as service:
        assert audit([lock], service) == UNSAFE
    printed = capsys.readouterr().out
    assert "UNSAFE" in printed and "OSV-1" in printed and "3.0" in printed


@pytest.mark.parametrize("status", [500, None])
def test_an_audit_that_could_not_ask_is_no_audit(
    lock: Path, status: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if status is None:
        assert audit([lock], "http://127.0.0.1:9/v1/query") == NOT_AUDITED
    else:
        with advisories(status=status) as service:
            assert audit([lock], service) == NOT_AUDITED
    printed = capsys.readouterr().out
    assert printed.startswith("NOT AUDITED") and "0 known" not in printed


def test_a_package_without_a_hash_is_not_audited(lock: Path) -> None:
    lock.write_text(LOCK + "loose==1.0\n")
    with advisories() as service:
        assert audit([lock], service) == NOT_AUDITED


@pytest.mark.parametrize("name", [*map(str, LOCKS), "infra/image/requirements.lock"])
def test_every_locked_package_has_a_version_and_a_hash(name: str) -> None:
    text = (ROOT / name).read_text()
    entries = [line for line in text.splitlines() if line and line[0] not in " #"]
    assert len(entries) == len(locked(ROOT / name)) > 30
    asked = rounds(text)
    assert sum(round_.count("==") for round_ in asked) == len(entries)
    assert all("--hash=sha256:" in pin for round_ in asked for pin in round_.split("==")[1:])
    assert not any(" ; " in round_ for round_ in asked)


@pytest.mark.parts
def test_the_bill_of_materials_has_every_locked_package(tmp_path: Path) -> None:
    lock, out = ROOT / LOCKS[0], tmp_path / "sbom.json"
    sbom(lock, out)
    response = json.loads(out.read_text())
    assert (response["bomFormat"], response["specVersion"]) == ("CycloneDX", "1.6")
    document = {(item["name"].lower(), item["version"]) for item in response["components"]}
    assert document == locked(lock)
    assert all(item["externalReferences"][0]["hashes"] for item in response["components"])
