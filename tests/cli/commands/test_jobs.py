"""Jobs that have ended or never started, over a real socket."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import ClassVar
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from cli.api.http import Json
from cli.main import app
from tests.serving import Quiet, serving

JOB: Json = {
    "job_id": "j",
    "name": "train",
    "tenant": "red",
    "pool": "gpu",
    "backend": "agent",
    "workers": 2,
    "gpus": 2.0,
    "phase": "succeeded",
    "reason": "",
    "submitted_at": 1,
    "started_at": 1,
    "ran_ms": 90_000,
    "gpu_ms": 180_000,
    "failure": None,
    "spec": {"name": "train"},
}


class Gateway(Quiet):
    """Answers a GET with the next stream or the document of its path; notes paths of commands."""

    documents: ClassVar[dict[str, Json]] = {}
    commands: ClassVar[list[str]] = []
    streams: ClassVar[dict[str, list[bytes]]] = {}

    def do_GET(self) -> None:
        if stream := self.streams.get(urlsplit(self.path).path):
            self.answer(200, stream.pop(0))
            return
        document = self.documents.get(urlsplit(self.path).path)
        body = json.dumps(document or {"reason": "not_found"}).encode()
        self.answer(404 if document is None else 200, body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.commands.append(self.path)
        self.answer(202, b'{"command_id": "c"}')


@pytest.fixture(autouse=True)
def documents(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Json]]:
    """Return the documents that the gateway of `berth` has, to be filled by the test."""
    monkeypatch.setattr(Gateway, "documents", {})
    monkeypatch.setattr(Gateway, "commands", [])
    monkeypatch.setattr(Gateway, "streams", {})
    with serving(Gateway) as url:
        monkeypatch.setenv("BERTH_URL", url)
        yield Gateway.documents


def fields(output: str) -> dict[str, str]:
    """Return the rows of a table of fields."""
    rows = (re.split(r"\s{2,}", line, maxsplit=1) for line in output.splitlines())
    return {row[0]: row[-1] for row in rows}


def berth(*words: str) -> str:
    ran = CliRunner().invoke(app, [*words])
    assert ran.exit_code == 0, ran.exception
    return ran.output


def test_a_job_that_has_ended_is_not_cancelled_again(documents: dict[str, Json]) -> None:
    documents["/v1/jobs/j"] = {"phase": "succeeded"}
    assert berth("cancel", "j") == "j: already succeeded\n"
    assert Gateway.commands == []


@pytest.mark.parametrize("document", [{"phase": "running"}, None])
def test_a_running_job_and_an_array_are_cancelled(
    documents: dict[str, Json], document: Json | None
) -> None:
    if document:
        documents["/v1/jobs/j"] = document
    assert berth("cancel", "j") == "j: cancellation requested\n"
    assert Gateway.commands == ["/v1/jobs/j/cancel"]


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (
            {"phase": "waiting", "started_at": 0},
            "no output: the job has not started, phase waiting; see `berth why JOB`\n",
        ),
        ({"phase": "succeeded", "started_at": 5, "backend": "agent"}, "no output\n"),
        (
            {"phase": "succeeded", "started_at": 5, "backend": "virtual"},
            "no output: virtual nodes run no program\n",
        ),
    ],
)
def test_a_job_without_output_has_a_reason(
    documents: dict[str, Json], document: Json, text: str
) -> None:
    documents["/v1/jobs/j/logs"] = {"lines": []}
    documents["/v1/jobs/j"] = document
    assert berth("logs", "j") == text


def frames(*lines: Json, end: str = "") -> bytes:
    texts = [f"event: line\ndata: {json.dumps(line)}\n\n" for line in lines]
    if end:
        texts.append(f'event: end\ndata: {{"reason": "{end}"}}\n\n')
    return "".join(texts).encode()


def line(number: int, text: str, rank: int = 0) -> Json:
    return {"attempt": 1, "rank": rank, "line": number, "text": text}


def test_lines_that_are_not_kept_are_reported_where_they_would_be(
    documents: dict[str, Json],
) -> None:
    kept = [{**line(7, "h"), "missing": 7}, line(8, "i"), {**line(12, "m"), "missing": 3}]
    documents["/v1/jobs/j/logs"] = {"lines": kept}
    ran = CliRunner().invoke(app, ["logs", "j"])
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.splitlines() == ["[1/0] h", "[1/0] i", "[1/0] m"]
    assert ran.stderr.splitlines() == [
        "7 lines of worker 1/0 are missing here",
        "3 lines of worker 1/0 are missing here",
    ]


def test_output_is_followed_through_an_outage_each_line_once(
    documents: dict[str, Json], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("berth_client.session.AGAIN_S", 0.01)
    first = [line(0, "a"), line(0, "x", rank=1), line(1, "b")]
    Gateway.streams["/v1/jobs/j/logs"] = [
        frames(*first),
        frames(*first, line(2, "c"), line(3, "x", rank=1), end="ended"),
    ]
    ran = CliRunner().invoke(app, ["logs", "-f", "j"])
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.splitlines() == ["[1/0] a", "[1/1] x", "[1/0] b", "[1/0] c", "[1/1] x"]
    away, again, missing = ran.stderr.splitlines()
    assert "the stream broke off; trying again for up to 60 s" in away
    assert again == "connected again" and missing == "2 lines of worker 1/1 are missing here"


def test_a_stream_that_ends_before_the_output_does_is_an_error(documents: dict[str, Json]) -> None:
    end = b'event: end\ndata: {"reason": "output_missing", "workers": [0, 3]}\n\n'
    Gateway.streams["/v1/jobs/j/logs"] = [frames(line(0, "a")) + end]
    ran = CliRunner().invoke(app, ["logs", "-f", "j"])
    assert (ran.exit_code, ran.stdout) == (1, "[1/0] a\n"), ran.output
    assert "the end of its output is missing (worker 0, 3)" in str(ran.exception)


def status(phase: str, attempt: int, reason: str = "", **more: object) -> bytes:
    data = {"phase": phase, "attempt": attempt, "reason": reason, **more}
    return b"event: status\ndata: %b\n\n" % json.dumps(data).encode()


def test_a_followed_job_that_is_transferred_goes_on_in_the_next_pool(
    documents: dict[str, Json],
) -> None:
    there = {**line(0, "b"), "job_id": "j2"}
    Gateway.streams["/v1/jobs/j/logs"] = [
        status("running", 1, pool="main")
        + frames(line(0, "a"))
        + status("running", 1, pool="side")
        + frames(there, end="ended")
    ]
    ran = CliRunner().invoke(app, ["logs", "-f", "j"])
    assert (ran.exit_code, ran.stdout) == (0, "[1/0] a\n[1/0] b\n"), ran.output
    assert "goes on in pool side; its attempts there begin with 1" in ran.stderr


def test_a_wait_of_the_followed_job_is_reported_on_stderr(documents: dict[str, Json]) -> None:
    Gateway.streams["/v1/jobs/j/logs"] = [
        status("running", 1)
        + frames(line(0, "a"))
        + status("running", 1, silent_nodes=["n1", "n2"])
        + status("running", 1)
        + status("waiting", 2, "node_lost")
        + status("waiting", 2, "node_lost")
        + status("placed", 2)
        + status("running", 2)
        + status("succeeded", 2)
        + frames(end="ended")
    ]
    documents["/v1/nodes/n1"] = {"state": "suspected", "silent_ms": 31_000, "lost_after_ms": None}
    ran = CliRunner().invoke(app, ["logs", "-f", "j"])
    assert (ran.exit_code, ran.stdout) == (0, "[1/0] a\n"), ran.output
    assert ran.stderr.splitlines() == [
        "node n1, n2 is silent: its output follows when it is heard again",
        "node n1 is silent for 31.0 s; its silence alone never loses it",
        "attempt 1 runs",
        "the job waits again after attempt 1: its node was lost",
        "attempt 2 starts",
        "attempt 2 runs",
    ]


@pytest.mark.parametrize(
    ("group", "empty"),
    [("dead", "no rejected records, no open inputs\n"), ("faults", "no slow workers\n")],
)
def test_a_group_of_records_without_a_verb_is_listed(
    documents: dict[str, Json], group: str, empty: str
) -> None:
    documents[f"/v1/{group}"] = {"items": []}
    assert berth(group) == empty


def test_a_running_job_shows_what_it_has_run_so_far(documents: dict[str, Json]) -> None:
    started_at = time.time_ns() // 1_000_000 - 2 * 3_600_000 - 60_000
    job = {**JOB, "phase": "running", "started_at": started_at, "ran_ms": 0, "gpu_ms": 3_600_000}
    documents["/v1/jobs/j"] = job
    documents["/v1/submissions"] = {"items": [job]}
    shown = fields(berth("show", "j"))
    assert shown["ran"].startswith("2 h ") and shown["gpu time"].startswith("5 h ")
    assert " 2 h " in berth("jobs").splitlines()[1]
    assert json.loads(berth("show", "j", "--json"))["ran_ms"] == 0


def test_a_job_that_ran_at_the_end_of_a_recording_ran_until_then(
    documents: dict[str, Json],
) -> None:
    started_at = 1_700_000_000_000
    job = {**JOB, "phase": "running", "started_at": started_at, "ran_ms": 0, "gpu_ms": 0}
    documents["/v1/jobs/j"] = shown = {**job, "as_of": started_at + 90_000}
    documents["/v1/submissions"] = {"items": [shown]}
    assert " 1 min 30 s" in berth("jobs").splitlines()[1]
    printed = fields(berth("show", "j"))
    assert (printed["ran"], printed["gpu time"]) == ("1 min 30 s", "3 min 0 s")
    assert "as_of" not in printed


def test_an_ended_job_shows_what_was_counted(documents: dict[str, Json]) -> None:
    documents["/v1/jobs/j"] = JOB
    shown = fields(berth("show", "j"))
    assert (shown["ran"], shown["gpu time"], shown["workers"]) == ("1 min 30 s", "3 min 0 s", "2")


def test_why_and_show_say_that_a_simulated_job_failed_on_purpose(
    documents: dict[str, Json],
) -> None:
    data = {"reason": "worker_failed", "exit_code": 1}
    end = {"type": "job.failed.v1", "at": 5, "until": None, "data": data}
    documents["/v1/jobs/j/why"] = {"items": [end]}
    simulated = {"phase": "failed", "exit_code": 1, "spec": {"simulated": {"exit_code": 1}}}
    documents["/v1/jobs/j"] = {**JOB, **simulated}
    for verb in ("why", "show"):
        assert "it failed on purpose" in berth(verb, "j").splitlines()[-1]


def test_a_rejected_job_without_specification_shows_none(documents: dict[str, Json]) -> None:
    job = {**JOB, "phase": "rejected", "workers": 0, "gpus": 0.0, "started_at": 0, "spec": {}}
    documents["/v1/jobs/j"] = {**job, "ran_ms": 0, "gpu_ms": 0}
    assert not {"workers", "gpus", "spec"} & fields(berth("show", "j")).keys()
    documents["/v1/submissions"] = {"items": [job]}
    assert " agent    -     rejected" in berth("jobs")


def test_a_refused_job_says_what_to_do(documents: dict[str, Json]) -> None:
    documents["/v1/jobs/j"] = {**JOB, "phase": "rejected", "reason": "infeasible", "detail": "d"}
    assert "to do: request what nodes of the pool have" in berth("show", "j")
    rejected = {"at": 1, "until": None, "type": "job.rejected.v1", "data": {"reason": "infeasible"}}
    documents["/v1/jobs/j/why"] = {"items": [rejected]}
    assert "to do: request what nodes of the pool have" in berth("why", "j")


def test_an_array_is_one_line_and_its_jobs_are_listed_by_filters(
    documents: dict[str, Json],
) -> None:
    counts = {"jobs": 12, "pending": 8, "running": 0, "succeeded": 3, "failed": 1, "cancelled": 0}
    shared = ("job_id", "name", "tenant", "pool", "gpus", "submitted_at")
    array = {**{name: JOB[name] for name in shared}, "array": counts}
    documents["/v1/submissions"] = {"items": [array, {**JOB, "array": None}]}
    documents["/v1/jobs"] = {"items": [{**JOB, "phase": "failed"}]}
    listed = berth("jobs").splitlines()
    assert "12 jobs: 8 pending, 3 succeeded, 1 failed" in listed[1] and "succeeded" in listed[2]
    assert "failed" in berth("jobs", "--failed") and "failed" in berth("jobs", "--array", "j")
    assert len(json.loads(berth("jobs", "--json"))) == 1, "one row for each job"
