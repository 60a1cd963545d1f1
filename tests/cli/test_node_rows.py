"""Nodes as `berth nodes` and `berth why` show them, over a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import HTTPServer
from typing import ClassVar
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from cli.http_api import Json
from cli.main import app
from cli.node_rows import state_of
from tests.cli.serving import Quiet, serving

NODE: Json = {
    "node_id": "vm",
    "pool": "gpu",
    "gpu_type": "h200",
    "gpus": 8,
    "used_milli": [0] * 8,
    "state": "joined",
    "alive": True,
    "draining": False,
    "cordoned": False,
    "health": 1.0,
    "reason": "",
    "silent_ms": 0,
    "lost_after_ms": 90_000,
    "joined_at": 1,
    "lost_at": 0,
    "suspected_at": 0,
    "identity": "approved",
}
SILENT: Json = {**NODE, "state": "suspected", "silent_ms": 60_000, "suspected_at": 2}
LOST: Json = {**NODE, "alive": False, "state": "lost", "reason": "silent", "lost_at": 3}
HELD: Json = {
    "at": 1,
    "until": None,
    "type": "job.held.v1",
    "data": {"reason": "no_node_fits", "detail": {"free_gpus": 0.0}},
}


class Gateway(Quiet):
    """Answers a GET with the document of its path, a POST with a receipt; 404 for other paths."""

    documents: ClassVar[dict[str, Json]] = {}

    def do_GET(self) -> None:
        document = self.documents.get(urlsplit(self.path).path)
        if document is None:
            self.answer(404, b'{"reason": "not_found", "detail": "no such object"}')
        else:
            self.answer(200, json.dumps(document).encode())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.answer(202, b'{"command_id": "c"}')


@pytest.fixture(autouse=True)
def documents(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Json]]:
    """Return the documents that the gateway of `berth` has, to be filled by the test."""
    monkeypatch.setattr(Gateway, "documents", {})
    with serving(HTTPServer(("127.0.0.1", 0), Gateway)) as url:
        monkeypatch.setenv("BERTH_URL", url)
        yield Gateway.documents


def berth(*words: str) -> str:
    ran = CliRunner().invoke(app, [*words])
    assert ran.exit_code == 0, ran.exception
    return ran.output


@pytest.mark.parametrize(
    ("node", "state"),
    [
        (NODE, "ready"),
        ({**NODE, "identity": None}, "ready"),
        ({**NODE, "cordoned": True, "health": 0.5}, "cordoned, health 0.50"),
        ({**NODE, "identity": "revoked"}, "revoked"),
        ({**SILENT, "identity": "revoked"}, "revoked, suspected"),
        (SILENT, "suspected"),
        (LOST, "lost (silent)"),
        ({**LOST, "state": "declared", "reason": "declared"}, "declared lost"),
    ],
)
def test_a_node_that_takes_no_job_is_not_ready(node: Json, state: str) -> None:
    assert state_of(node) == state


def test_a_pending_node_is_named_with_what_to_do(documents: dict[str, Json]) -> None:
    documents["/v1/nodes"] = {"items": []}
    enrolled = [{"node_id": "vm", "pool": "gpu", "state": "pending"}]
    documents["/v1/enrolments"] = {"items": enrolled}
    assert berth("nodes").splitlines() == [
        "no nodes",
        "pending: vm; `berth nodes approve NODE` lets a node work",
    ]
    assert berth("nodes", "--pool", "other").splitlines() == ["no nodes"]


def test_a_tenant_who_may_see_no_identities_sees_the_nodes(documents: dict[str, Json]) -> None:
    documents["/v1/nodes"] = {"items": [NODE]}
    assert berth("nodes").splitlines()[1].split()[0] == "vm"


def test_a_waiting_job_names_the_nodes_that_are_away(documents: dict[str, Json]) -> None:
    documents["/v1/jobs/j/why"] = {"items": [HELD]}
    documents["/v1/jobs/j"] = {"pool": "gpu"}
    documents["/v1/nodes"] = {"items": [NODE, SILENT]}
    assert "node vm (8 GPUs) is silent for 1 min 0 s: no job starts there" in berth("why", "j")
    documents["/v1/nodes"] = {"items": [LOST]}
    assert "node vm (8 GPUs) is lost (silent) since" in berth("why", "j")


@pytest.mark.parametrize("change", [{"until": 5}, {"data": {"reason": "behind_head"}}])
def test_a_job_that_waits_for_no_node_names_none(documents: dict[str, Json], change: Json) -> None:
    documents["/v1/jobs/j/why"] = {"items": [{**HELD, **change}]}
    assert "vm" not in berth("why", "j")


def test_a_node_that_is_lost_already_is_no_unknown_node(documents: dict[str, Json]) -> None:
    refusal = {"type": "node.lost", "reason": "unknown_node", "detail": "no node vm"}
    documents["/v1/commands/c"] = {"accepted": False, **refusal}
    documents["/v1/nodes"] = {"items": [LOST]}
    assert berth("nodes", "lost", "vm") == "vm: already lost (silent)\n"


def test_a_node_is_shown_with_times_and_lists_as_text(documents: dict[str, Json]) -> None:
    documents["/v1/nodes"] = {"items": [{**NODE, "labels": {"zone": "a"}}]}
    documents["/v1/enrolments/vm"] = {"state": "approved", "expires_at": 0}
    shown = dict(line.split(maxsplit=1) for line in berth("nodes", "show", "vm").splitlines())
    assert shown["lost_after_ms"] == "1 min 30 s"
    assert shown["labels"] == "zone a"
    assert shown["joined_at"].startswith("1970-01-0") or shown["joined_at"].startswith("1969")
    assert json.loads(berth("nodes", "show", "vm", "--json"))["joined_at"] == 1
