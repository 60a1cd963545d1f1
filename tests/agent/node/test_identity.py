"""The file of the identity, and what a renewal keeps of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from berth_agent.linux import files
from berth_agent.node.identity import (
    Identity,
    join,
    prepare_renewal,
    read_identity,
    renew,
    write_identity,
)
from tests.serving import Quiet, serving

GIVEN = ("https://executor.example:8444",)
OFFERED = ("https://other.example:8444",)


class Gateway(Quiet):
    """Answers each join and renewal with other addresses of executors."""

    def do_POST(self) -> None:
        self.received()
        joined = {"node_id": "n1", "pool": "gpu", "approved": True, "expires_at": 9}
        self.answer(200, json.dumps({**joined, "executors": OFFERED}).encode())


def test_an_older_agent_reads_the_identity_of_a_newer_one(tmp_path: Path) -> None:
    """The way back from an upgrade."""
    identity = Identity("n1", "gpu", "s", "https://gateway", GIVEN, 1, True, "")
    write_identity(str(tmp_path), identity)
    path = f"{tmp_path}/identity.json"
    files.write_json(path, {**files.read_json(path), "field_of_the_future": [1]})
    assert read_identity(str(tmp_path)) == identity


def test_the_secret_of_a_join_is_durably_gone_when_the_join_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is removed without a sync of its folder may be there again after a power cut."""
    on_disk: list[set[str]] = []

    def sync_folder(folder: str) -> None:
        on_disk.append({path.name for path in Path(folder).iterdir()})

    monkeypatch.setattr(files, "sync_folder", sync_folder)
    with serving(Gateway) as url:
        join(str(tmp_path), url, "t.1.secret", "n1", "hw", "", ())
    assert on_disk == [{"joining.json"}, {"joining.json", "identity.json"}, {"identity.json"}]


@pytest.mark.parametrize(("is_own", "kept"), [(True, GIVEN), (False, OFFERED)])
def test_addresses_given_at_the_join_outlive_a_renewal(is_own: bool, kept: tuple[str, ...]) -> None:
    with serving(Gateway) as url:
        identity = Identity("n1", "gpu", "s", url, GIVEN, 1, True, "", has_own_executors=is_own)
        prepared = prepare_renewal(identity)
        renewed = renew(prepared, prepared.credential, ["hw"])
    assert renewed.executors == kept and renewed.secret == prepared.next_secret
