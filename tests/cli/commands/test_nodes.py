"""Nodes as `berth nodes` and `berth why` show them, over a real socket."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from time import time

import pytest
from typer.testing import CliRunner

from cli.api.http import Json
from cli.errors import Unreachable
from cli.main import app
from tests.cli.node_rows import LOST, NODE, SILENT
from tests.cli.serving import Gateway
from tests.serving import serving

HELD: Json = {
    "at": 1,
    "until": None,
    "type": "job.held.v1",
    "data": {"reason": "no_node_fits", "detail": {"free_gpus": 0.0}},
}


@pytest.fixture(autouse=True)
def documents(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Json]]:
    """Return the documents that the gateway of `berth` has, to be filled by the test."""
    for name in ("documents", "refusals"):
        monkeypatch.setattr(Gateway, name, {})
    monkeypatch.setattr(Gateway, "paths", [])
    with serving(Gateway) as url:
        monkeypatch.setenv("BERTH_URL", url)
        Gateway.documents["/v1/enrolments"] = {"items": []}
        yield Gateway.documents


def berth(*words: str) -> str:
    ran = CliRunner().invoke(app, [*words])
    assert ran.exit_code == 0, ran.exception
    return ran.output


def test_a_pending_node_is_named_with_what_to_do(documents: dict[str, Json]) -> None:
    documents["/v1/nodes"] = {"items": []}
    enrolled = [{"node_id": "vm", "pool": "gpu", "state": "pending"}]
    documents["/v1/enrolments"] = {"items": enrolled}
    assert berth("nodes").splitlines() == [
        "no nodes",
        "pending: vm; `berth nodes approve NODE` lets a node work",
    ]


def test_identities_are_listed_of_one_pool(documents: dict[str, Json]) -> None:
    row = {"node_id": "vm", "pool": "gpu", "state": "pending", "token_id": "t", "expires_at": 1}
    documents["/v1/nodes"] = {"items": []}
    documents["/v1/enrolments"] = {"items": [row]}
    assert "vm" in berth("nodes", "--enrolled", "--pool", "gpu")
    assert Gateway.paths == ["/v1/enrolments?pool=gpu&limit=1000"]
    berth("nodes", "--pool", "gpu")
    assert [path.partition("&")[0] for path in Gateway.paths[1:]] == [
        "/v1/nodes?pool=gpu",
        "/v1/enrolments?pool=gpu",
    ]


def test_nodes_that_are_gone_are_listed_on_request(documents: dict[str, Json]) -> None:
    now_ms = round(time() * 1000)
    lost_now = {**LOST, "lost_at": now_ms}
    documents["/v1/nodes"] = {
        "items": [
            {**NODE, "node_id": "there"},
            {**lost_now, "node_id": "just-lost"},
            {**LOST, "node_id": "holds", "used_milli": [1000]},
            {**LOST, "node_id": "declared", "state": "declared"},
            {**LOST, "node_id": "old"},
            {**lost_now, "node_id": "revoked", "identity": "revoked"},
        ]
    }
    *lines, hint = berth("nodes").splitlines()
    shown = ["there", "just-lost", "holds", "declared"]
    assert [line.split()[0] for line in lines[1:]] == shown
    assert hint == "2 more nodes are gone; `berth nodes --all` lists them"
    for words in (("nodes", "--all"), ("nodes", "list", "--all")):
        names = [line.split()[0] for line in berth(*words).splitlines()[1:]]
        assert names == [*shown, "old", "revoked"]
    assert len(json.loads(berth("nodes", "--json"))) == 6


def test_a_tenant_who_may_see_no_identities_sees_the_nodes(documents: dict[str, Json]) -> None:
    documents["/v1/nodes"] = {"items": [NODE]}
    Gateway.refusals["/v1/enrolments"] = 403
    assert berth("nodes").splitlines()[1].split()[0] == "vm"


def test_a_failure_to_read_the_identities_is_an_error(documents: dict[str, Json]) -> None:
    documents["/v1/nodes"] = {"items": [NODE]}
    Gateway.refusals["/v1/enrolments"] = 503
    assert isinstance(CliRunner().invoke(app, ["nodes"]).exception, Unreachable)


def test_a_waiting_job_names_the_nodes_that_are_away(documents: dict[str, Json]) -> None:
    documents["/v1/jobs/j/why"] = {"items": [HELD]}
    documents["/v1/jobs/j"] = {"pool": "gpu"}
    documents["/v1/nodes"] = {"items": [NODE, SILENT]}
    silent = "node vm (8 GPUs) is silent for 1 min 0 s; it counts as lost after 1 min 30 s"
    assert f"{silent} without a heartbeat: no job starts there" in berth("why", "j")
    documents["/v1/nodes"] = {"items": [{**LOST, "silent_ms": 91_000}]}
    assert "after 1 min 31 s without a heartbeat (1 min 30 s are allowed)" in berth("why", "j")
    documents["/v1/nodes"] = {"items": [LOST]}
    assert "node vm (8 GPUs) is lost (silent) since" in berth("why", "j")
    full = {"problem": "disk_full", "detail": "d", "since_at": 1}
    documents["/v1/nodes"] = {"items": [{**NODE, "problems": [full]}]}
    documents["/v1/jobs/j/why"] = {"items": [{**HELD, "data": {"reason": "disk_full"}}]}
    shown = berth("why", "j")
    assert "its nodes take no new jobs until their disks have space again" in shown
    assert "node vm (8 GPUs) has a full disk: no job starts there until it has space" in shown


@pytest.mark.parametrize(
    ("stop_after_s", "text"),
    [
        (600.0, "it stops its workers 10 min 0 s after the last heartbeat"),
        ("keep", "its workers run on meanwhile"),
    ],
)
def test_a_running_job_names_its_silent_nodes(
    documents: dict[str, Json], stop_after_s: object, text: str
) -> None:
    running = {**HELD, "type": "job.started.v1", "data": {"attempt": 1}}
    documents["/v1/jobs/j/why"] = {"items": [running]}
    documents["/v1/jobs/j"] = {"pool": "gpu", "nodes": ["vm"]}
    documents["/v1/jobs/j/timeline"] = {"items": []}
    documents["/v1/nodes"] = {"items": [SILENT, {**SILENT, "node_id": "other"}]}
    settings = {"stop_after_s": stop_after_s, "lease_s": 30.0}
    documents["/v1/pools"] = {"items": [{"pool": "gpu", "settings": settings}]}
    shown = berth("why", "j")
    assert shown.splitlines()[-1] == (
        "its node vm is silent for 1 min 0 s; it counts as lost after 1 min 30 s without a"
        f" heartbeat; {text}"
    )
    documents["/v1/nodes"] = {"items": [NODE]}
    assert "vm" not in berth("why", "j")


@pytest.mark.parametrize("backend", ["virtual", "agent", ""])
def test_the_history_of_a_job_says_that_its_gpus_were_simulated(
    documents: dict[str, Json], backend: str
) -> None:
    ended = {**HELD, "until": 5}
    documents["/v1/jobs/j/why"] = {"items": [ended], "backend": backend}
    shown = berth("why", "j").splitlines()
    assert ("nodes: virtual (simulated GPUs)" in shown) == (backend == "virtual")


@pytest.mark.parametrize("change", [{"until": 5}, {"data": {"reason": "behind_head"}}])
def test_a_job_that_waits_for_no_node_names_none(documents: dict[str, Json], change: Json) -> None:
    documents["/v1/jobs/j/why"] = {"items": [{**HELD, **change}]}
    assert "vm" not in berth("why", "j")


@pytest.mark.parametrize(("duplicate", "text"), [(True, "already lost"), (False, "declared lost")])
def test_a_node_that_is_lost_already_is_reported_as_such(
    documents: dict[str, Json], duplicate: bool, text: str
) -> None:
    documents["/v1/commands/c"] = {"accepted": True, "duplicate": duplicate}
    assert berth("nodes", "lost", "vm") == f"vm: {text}\n"


def test_a_node_is_shown_with_times_and_lists_as_text(documents: dict[str, Json]) -> None:
    documents["/v1/nodes/vm"] = {**NODE, "labels": {"zone": "a"}}
    documents["/v1/enrolments/vm"] = {"state": "approved", "expires_at": 0}
    lines = berth("nodes", "show", "vm").splitlines()
    shown = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in lines)
    assert shown["lost after"] == "1 min 30 s"
    assert shown["labels"] == "zone a"
    assert shown["joined_at"].startswith("1970-01-0") or shown["joined_at"].startswith("1969")
    assert json.loads(berth("nodes", "show", "vm", "--json"))["joined_at"] == 1


def test_a_node_is_shown_with_its_problems_and_what_to_do(documents: dict[str, Json]) -> None:
    full = {"problem": "disk_full", "detail": "the disk of /state", "since_at": 1}
    documents["/v1/nodes/vm"] = {**NODE, "problems": [full]}
    documents["/v1/enrolments/vm"] = {"state": "approved", "expires_at": 0}
    last = berth("nodes", "show", "vm").splitlines()[-1]
    assert last.split()[:2] == ["problem", "disk_full,"] and "the disk of /state; it takes" in last


def test_a_node_that_waits_for_its_approval_says_how_it_gets_it(documents: dict[str, Json]) -> None:
    documents["/v1/enrolments/vm"] = {"state": "pending", "expires_at": 0}
    last = berth("nodes", "show", "vm").splitlines()[-1]
    assert last.split(maxsplit=1) == ["pending", "`berth nodes approve vm` lets it work"]
