"""`berth jobs`, `show`, `cancel`: the life of a job."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from cli.api.answers import api, await_answer, pages, report
from cli.api.http import Api, Json, part, pool_field
from cli.api.ids import job_id
from cli.errors import BadInput, CliError
from cli.input.arguments import AsJson, Data, Limit, OnlyPool, PoolOfObject, Reason
from cli.input.documents import Body
from cli.text.failures import failure_lines, failure_of, planned_failure, refusal_lines
from cli.text.nodes import backend_text
from cli.text.output import emit, lines, table
from cli.text.progress import progress_lines
from cli.text.reasons import start_lines
from cli.text.times import clock, field_text, label, now_ms, span

ENDS = ("succeeded", "failed", "cancelled", "rejected")
OF_SPEC = ("spec", "workers", "gpus", "priority_class", "user_id")
"""Fields of a job that come from its specification."""
COLUMNS = (
    "JOB",
    "NAME",
    "TENANT",
    "POOL",
    "BACKEND",
    "GPUS",
    "PHASE",
    "REASON",
    "SUBMITTED",
    "RAN",
)
SUBMISSIONS = 200
"""Rows of a page of jobs and arrays."""
JobArgument = Annotated[
    str, typer.Argument(help="Job id, or its first 4 characters or more.", metavar="JOB")
]


def jobs(
    tenant: Annotated[str | None, typer.Option(help="Filter by tenant.")] = None,
    phase: Annotated[
        str | None, typer.Option(help="Filter by phase, such as waiting or running.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Filter by phase failed.")] = False,
    pool: OnlyPool = None,
    name: Annotated[str | None, typer.Option(help="Filter by name prefix.")] = None,
    array: Annotated[str | None, typer.Option(help="Filter by array id.")] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List jobs, newest first; an array is one line, its jobs are listed by --array or --phase."""
    if failed and phase not in (None, "failed"):
        raise BadInput(f"--failed excludes --phase: {phase}; give one of them")
    shown_phase = "failed" if failed else phase
    client = api(data)
    query: Json = {"tenant": tenant, "pool": pool, "name": name}
    if as_json or shown_phase or array:
        query |= {"phase": shown_phase, "array": job_id(client, array) if array else None}
        rows = pages(client, "/v1/jobs", query, limit)
    else:
        rows = pages(client, "/v1/submissions", query, limit, SUBMISSIONS)
    if as_json:
        emit(rows)
        return
    table(COLUMNS, (_array_row(row) if row.get("array") else _row(row) for row in rows), "no jobs")


def _array_row(row: Json) -> tuple[object, ...]:
    counts = cast("dict[str, int]", row["array"])
    parts = [f"{number} {name}" for name, number in counts.items() if number and name != "jobs"]
    phase = f"{counts['jobs']} jobs: {', '.join(parts)}"
    head = (row["job_id"], row["name"], row["tenant"], row["pool"], "-", row["gpus"])
    return (*head, phase, "-", clock(row["submitted_at"]), "-")


def _row(job: Json) -> tuple[object, ...]:
    job = _so_far(job)
    ran = span(job["ran_ms"]) if job["ran_ms"] else "-"
    return (
        job["job_id"],
        job["name"],
        job["tenant"],
        job["pool"],
        job["backend"],
        job["gpus"] if job["workers"] else "-",
        job["phase"],
        _reason(job),
        clock(job["submitted_at"]),
        ran,
    )


def _so_far(job: Json) -> Json:
    """Return the job with what its present run adds to its run time and GPU time, ms.

    The API counts both at the end of a run. The run of a recorded simulation ends with it.
    """
    as_of = job.get("as_of") or now_ms()
    job = {name: value for name, value in job.items() if name != "as_of"}
    if job["phase"] != "running" or not job["started_at"]:
        return job
    ran_ms = max(0, cast("int", as_of) - cast("int", job["started_at"]))
    gpu_ms = round(ran_ms * cast("float", job["gpus"]))
    return {
        **job,
        "ran_ms": cast("int", job["ran_ms"]) + ran_ms,
        "gpu_ms": cast("int", job["gpu_ms"]) + gpu_ms,
    }


def _reason(job: Json) -> object:
    """Return why it failed in one word where that is known, else the reason of its phase."""
    failure = failure_of(job)
    return failure["reason"] if failure else job["reason"]


def show(job: JobArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Show a job."""
    client = api(data)
    job = job_id(client, job)
    document = client.get(f"/v1/jobs/{part(job)}")
    if as_json:
        emit(document)
        return
    start = document.pop("start", None)
    shown = _so_far(document)
    if not shown["spec"]:
        # The record of a job that was rejected at once has no specification.
        shown = {name: value for name, value in shown.items() if name not in OF_SPEC}
    cells = ((label(name), _value(name, value)) for name, value in shown.items())
    table(("FIELD", "VALUE"), cells)
    lines(start_lines(start, document.get("as_of")))
    lines(progress_lines(document))
    if failure := failure_of(document):
        lines(failure_lines(failure, job))
    if document["phase"] == "rejected":
        lines(refusal_lines(document["reason"]))
    lines(planned_failure(document))


def _value(name: str, value: object) -> str:
    if name == "backend" and value:
        return backend_text(value)
    if name == "failure":
        return str(value["reason"]) if isinstance(value, dict) else "-"
    return field_text(name, value)


def cancel(
    job: Annotated[
        str, typer.Argument(help="Id of a job or array, or its beginning.", metavar="JOB")
    ],
    reason: Reason = "",
    pool: PoolOfObject = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended.")] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Cancel a job or an array."""
    client = api(data)
    job = job_id(client, job)
    if phase := _ended_phase(client, job):
        report(as_json, {"job_id": job, "phase": phase}, f"{job}: already {phase}")
        return
    body: Body = {"reason": reason, **pool_field(pool)}
    ticket = client.post(f"/v1/jobs/{part(job)}/cancel", body)
    answer = await_answer(client, ticket) if wait else {}
    outcome = "cancelled" if answer else "cancellation requested"
    report(as_json, {"job_id": job, **ticket, "answer": answer or None}, f"{job}: {outcome}")


def _ended_phase(client: Api, job: str) -> str:
    """Return the phase of a job that has ended; empty for another, an array, or if unknown."""
    try:
        phase = str(client.get(f"/v1/jobs/{part(job)}")["phase"])
    except CliError:
        return ""
    return phase if phase in ENDS else ""
