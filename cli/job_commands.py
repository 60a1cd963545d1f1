"""`berth submit`, `jobs`, `show`, `cancel`, `logs`: the life of a job."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, cast

import typer

from cli.answers import Watch, api, await_answer, pages, report
from cli.arguments import AsJson, Data
from cli.errors import BadInput, CliError
from cli.failure_words import failure_lines, failure_of
from cli.http_api import Api, Json, part
from cli.job_file import Body, merged, read
from cli.output import emit, lines, say, table, text_of
from cli.times import clock, span

ENDS = ("succeeded", "failed", "cancelled", "rejected")
WAIT_S = 0.3
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
JobArgument = Annotated[str, typer.Argument(help="Job id.", metavar="JOB")]


def submit(
    command: Annotated[
        list[str] | None, typer.Argument(help="Command of each worker, after `--`.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("-f", "--file", help="Job file, JSON or YAML.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Tenant that owns the job.")] = None,
    pool: Annotated[str | None, typer.Option(help="Pool; defaults to the tenant's pool.")] = None,
    name: Annotated[str | None, typer.Option(help="Job name.")] = None,
    gpus: Annotated[float | None, typer.Option(help="GPUs per worker.")] = None,
    workers: Annotated[int | None, typer.Option(help="Number of workers.")] = None,
    gpu_type: Annotated[
        list[str] | None, typer.Option(help="Allowed GPU type; may be repeated.")
    ] = None,
    priority: Annotated[
        str | None, typer.Option("--class", help="Priority class: system, high, normal or low.")
    ] = None,
    after: Annotated[
        list[str] | None, typer.Option(help="Job that must succeed first; may be repeated.")
    ] = None,
    array: Annotated[int | None, typer.Option(help="Number of jobs of an array.")] = None,
    workdir: Annotated[
        str | None, typer.Option(help="Absolute directory of the workers on their nodes.")
    ] = None,
    walltime: Annotated[
        float | None, typer.Option(min=0.001, help="Longest run time, in seconds.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key; a repeated submit returns the same job.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended.")] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Submit a job: `berth submit --tenant vision --gpus 2 -- python train.py`."""
    body = merged(
        read(file) if file else {},
        {"tenant": tenant, "pool": pool, "array_size": array, "idempotency_key": key},
        {
            "name": name,
            "command": command,
            "gang": {"gpus_per_worker": gpus, "workers": workers},
            "gpu_types": gpu_type,
            "priority_class": priority,
            "depends_on": after,
            "workdir": workdir,
            "walltime_s": walltime,
        },
    )
    client = api(data)
    ticket = client.post("/v1/jobs", _named(body))
    phases = _ended(client, ticket) if wait else {}
    report(
        as_json, {**ticket, **({"jobs": phases} if wait else {})}, *_ticket_lines(ticket, phases)
    )
    _explain_failures(client, phases)
    if any(phase != "succeeded" for phase in phases.values()):
        raise typer.Exit(1)


def _named(body: Body) -> Body:
    spec = cast("Body", body["spec"])
    if not spec.get("name"):
        argv = cast("list[str]", spec.get("command") or [])
        if not argv:
            raise BadInput("no command given; use -f FILE or a command after `--`")
        spec = {**spec, "name": Path(argv[0]).name or "job"}
    return {**body, "spec": spec}


def _ticket_lines(ticket: Json, ended: dict[str, str]) -> list[str]:
    if ended:
        return [f"{job_id}  {phase}" for job_id, phase in ended.items()]
    return [str(job_id) for job_id in cast("list[str]", ticket["job_ids"])]


def _explain_failures(client: Api, phases: dict[str, str]) -> None:
    """Say on stderr why the first failed job of a submission failed."""
    for job_id, phase in phases.items():
        if phase == "failed":
            failure = failure_of(client.get(f"/v1/jobs/{part(job_id)}"))
            for text in failure_lines(failure) if failure else ():
                say(text)
            return


def _ended(client: Api, ticket: Json) -> dict[str, str]:
    """Wait until all jobs of the ticket have ended; return their phases."""
    await_answer(client, ticket)
    waiting = list(cast("list[str]", ticket["job_ids"]))
    phases: dict[str, str] = {}
    watch = Watch(client)
    while waiting:
        for job_id in list(waiting):
            phase = str((watch.look(f"/v1/jobs/{part(job_id)}") or {}).get("phase"))
            if phase in ENDS:
                phases[job_id] = phase
                waiting.remove(job_id)
        time.sleep(WAIT_S if waiting else 0)
    return phases


def jobs(
    tenant: Annotated[str | None, typer.Option(help="Filter by tenant.")] = None,
    phase: Annotated[
        str | None, typer.Option(help="Filter by phase, such as waiting or running.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Filter by phase failed.")] = False,
    pool: Annotated[str | None, typer.Option(help="Filter by pool.")] = None,
    name: Annotated[str | None, typer.Option(help="Filter by name prefix.")] = None,
    array: Annotated[str | None, typer.Option(help="Filter by array id.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of rows.")] = 50,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List jobs, newest first."""
    if failed and phase not in (None, "failed"):
        raise BadInput(f"--failed excludes --phase: {phase}; give one of them")
    wanted = "failed" if failed else phase
    query = {"tenant": tenant, "phase": wanted, "pool": pool, "name": name, "array": array}
    rows = pages(api(data), "/v1/jobs", query, limit)
    if as_json:
        emit(rows)
        return
    table(COLUMNS, (_row(row) for row in rows), "no jobs")


def _row(job: Json) -> tuple[object, ...]:
    ran = span(job["ran_ms"]) if job["ran_ms"] else "-"
    return (
        job["job_id"],
        job["name"],
        job["tenant"],
        job["pool"],
        job["backend"],
        job["gpus"],
        job["phase"],
        _reason(job),
        clock(job["submitted_at"]),
        ran,
    )


def _reason(job: Json) -> object:
    """Return why it failed in one word where that is known, else the reason of its phase."""
    failure = failure_of(job)
    return failure["reason"] if failure else job["reason"]


def show(job: JobArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Show a job."""
    document = api(data).get(f"/v1/jobs/{part(job)}")
    if as_json:
        emit(document)
        return
    table(("FIELD", "VALUE"), ((name, _value(name, value)) for name, value in document.items()))
    if failure := failure_of(document):
        lines(failure_lines(failure))


def _value(name: str, value: object) -> str:
    if name.endswith("_at") or name == "waiting_since":
        return clock(value)
    if name.endswith("_ms"):
        return span(value)
    if name == "backend" and value == "virtual":
        return "virtual (simulated GPUs)"
    if name == "failure":
        return str(value["reason"]) if isinstance(value, dict) else "-"
    return json.dumps(value) if isinstance(value, (dict, list)) else text_of(value)


def cancel(
    job: Annotated[str, typer.Argument(help="Id of a job or array.", metavar="JOB")],
    reason: Annotated[str, typer.Option(help="Reason, recorded in the audit log.")] = "",
    pool: Annotated[
        str | None, typer.Option(help="Pool; needed while the read models are unavailable.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended.")] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Cancel a job or an array."""
    client = api(data)
    body: Body = {"reason": reason, **({"pool": pool} if pool else {})}
    ticket = client.post(f"/v1/jobs/{part(job)}/cancel", body)
    answer = await_answer(client, ticket) if wait else {}
    outcome = "cancelled" if answer else "cancellation requested"
    report(as_json, {"job_id": job, **ticket, "answer": answer or None}, f"{job} {outcome}")


def logs(
    job: JobArgument,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Keep printing new output.")
    ] = False,
    tail: Annotated[
        int, typer.Option(min=1, max=10000, help="Number of lines, from the last.")
    ] = 1000,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Print the output of a job's workers."""
    path, client = f"/v1/jobs/{part(job)}/logs", api(data)
    if not follow:
        document = client.get(path, {"tail": tail})
        printed = cast("list[Json]", document["lines"])
        if as_json:
            emit(document)
        else:
            lines(_line(frame) for frame in printed)
        return
    for event, text in client.stream(path, {"follow": "true"}):
        frame = json.loads(text)
        if event == "end":
            if frame.get("reason") not in (None, "", "ended"):
                raise CliError(f"the stream ended: {frame.get('reason')}")
            return
        lines([text] if as_json else [_line(frame)])


def _line(printed: Json) -> str:
    return f"[{printed['attempt']}/{printed['rank']}] {text_of(printed['text'])}"
