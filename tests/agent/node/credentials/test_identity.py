"""The file of the identity, and what a renewal keeps of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from berth_agent.linux import files
from berth_agent.node.credentials.identity import (
    Identity,
    join,
    mark_of,
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

    more: ClassVar[dict[str, object]] = {}
    """Further fields of its answer."""

    def do_POST(self) -> None:
        self.received()
        joined = {"node_id": "n1", "pool": "gpu", "approved": True, "expires_at": 9}
        self.answer(200, json.dumps({**joined, "executors": OFFERED, **self.more}).encode())


class GatewayWithId(Gateway):
    """As the gateway of an installation that has an id, and of a newer version."""

    more: ClassVar[dict[str, object]] = {"installation": "abc123", "field_of_the_future": 1}


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


def test_the_mark_is_the_id_of_the_installation_or_what_an_older_one_is_known_by(
    tmp_path: Path,
) -> None:
    with serving(GatewayWithId) as url:
        joined = join(str(tmp_path), url, "t.1.secret", "n1", "hw", "", ())
        assert joined.installation == "abc123"
    with serving(Gateway) as url:
        joined = join(str(tmp_path), url, "t.1.secret", "n1", "hw", "", ())
        assert joined.installation == mark_of(url, "")


@pytest.mark.parametrize(
    ("gateway", "mark", "has_own_name", "renewed"),
    [
        (GatewayWithId, "", False, "abc123"),
        (GatewayWithId, "by-its-ca", False, "abc123"),
        (Gateway, "abc123", False, "abc123"),
        (Gateway, "", False, ""),
        (GatewayWithId, "", True, ""),
    ],
)
def test_a_renewal_brings_the_id_of_the_installation(
    gateway: type[Gateway], mark: str, has_own_name: bool, renewed: str
) -> None:
    with serving(gateway) as url:
        identity = Identity("n1", "gpu", "s", url, GIVEN, 1, True, "", installation=mark)
        prepared = prepare_renewal(replace(identity, has_own_name=has_own_name))
        assert renew(prepared, prepared.credential, ["hw"]).installation == renewed
