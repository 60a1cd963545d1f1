"""`berth submit`, `jobs`, `show`, `cancel`, `logs`: a job from wish to end."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, cast

import typer

from cli.arguments import AsJson, Data
from cli.calls import Watch, answered, api, pages, report
from cli.errors import BadInput, CliError
from cli.http_api import Api, Json, part
from cli.job_file import Body, merged, read
from cli.output import emit, lines, table, text_of
from cli.times import clock, span

ENDS = ("succeeded", "failed", "cancelled", "rejected")
WAIT_S = 0.3
JobArgument = Annotated[str, typer.Argument(help="The job's id.", metavar="JOB")]


def submit(
    command: Annotated[
        list[str] | None, typer.Argument(help="The program of each worker, behind `--`.")
    ] = None,
    file: Annotated[Path | None, typer.Option("-f", "--file", help="job.json or job.yaml")] = None,
    tenant: Annotated[str | None, typer.Option(help="Whose; for operators.")] = None,
    pool: Annotated[str | None, typer.Option(help="Default: the tenant's.")] = None,
    name: Annotated[str | None, typer.Option(help="What people call it.")] = None,
    gpus: Annotated[float | None, typer.Option(help="GPUs of each worker.")] = None,
    workers: Annotated[int | None, typer.Option(help="Workers of the gang.")] = None,
    gpu_type: Annotated[list[str] | None, typer.Option(help="Allowed; may be repeated.")] = None,
    priority: Annotated[
        str | None, typer.Option("--class", help="system, high, normal or low")
    ] = None,
    after: Annotated[list[str] | None, typer.Option(help="Jobs to succeed first.")] = None,
    array: Annotated[int | None, typer.Option(help="So many copies.")] = None,
    key: Annotated[str | None, typer.Option(help="Idempotency key: a repeat is free.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until it has ended.")] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Run a job: `berth submit --tenant vision --gpus 2 -- python train.py`."""
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
        },
    )
    client = api(data)
    ticket = client.post("/v1/jobs", _named(body))
    found = _ended(client, ticket) if wait else {}
    report(as_json, {**ticket, **({"jobs": found} if wait else {})}, *_told(ticket, found))
    if any(phase != "succeeded" for phase in found.values()):
        raise typer.Exit(1)


def _named(body: Body) -> Body:
    spec = cast("Body", body["spec"])
    if not spec.get("name"):
        argv = cast("list[str]", spec.get("command") or [])
        if not argv:
            raise BadInput("nothing to run: name a file with -f, or a program behind `--`")
        spec = {**spec, "name": Path(argv[0]).name or "job"}
    return {**body, "spec": spec}


def _told(ticket: Json, ended: dict[str, str]) -> list[str]:
    if ended:
        return [f"{job_id}  {phase}" for job_id, phase in ended.items()]
    return [str(job_id) for job_id in cast("list[str]", ticket["job_ids"])]


def _ended(client: Api, ticket: Json) -> dict[str, str]:
    """Phases of all copies, once none of them goes on."""
    answered(client, ticket)
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
    tenant: Annotated[str | None, typer.Option(help="Whose.")] = None,
    phase: Annotated[str | None, typer.Option(help="Such as waiting or running.")] = None,
    pool: Annotated[str | None, typer.Option(help="Where.")] = None,
    name: Annotated[str | None, typer.Option(help="How the name begins.")] = None,
    array: Annotated[str | None, typer.Option(help="The stem of an array's jobs.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List jobs, the youngest first."""
    query = {"tenant": tenant, "phase": phase, "pool": pool, "name": name, "array": array}
    rows = pages(api(data), "/v1/jobs", query, limit)
    if as_json:
        emit(rows)
        return
    columns = ("JOB", "NAME", "TENANT", "POOL", "GPUS", "PHASE", "REASON", "SUBMITTED", "RAN")
    table(columns, (_row(row) for row in rows), "no jobs")


def _row(job: Json) -> tuple[object, ...]:
    ran = span(job["ran_ms"]) if job["ran_ms"] else "-"
    return (
        job["job_id"],
        job["name"],
        job["tenant"],
        job["pool"],
        job["gpus"],
        job["phase"],
        job["reason"],
        clock(job["submitted_at"]),
        ran,
    )


def show(job: JobArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Everything about one job."""
    found = api(data).get(f"/v1/jobs/{part(job)}")
    if as_json:
        emit(found)
        return
    table(("FIELD", "VALUE"), ((name, _value(name, value)) for name, value in found.items()))


def _value(name: str, value: object) -> str:
    if name.endswith("_at") or name == "waiting_since":
        return clock(value)
    if name.endswith("_ms"):
        return span(value)
    return json.dumps(value) if isinstance(value, (dict, list)) else text_of(value)


def cancel(
    job: Annotated[str, typer.Argument(help="The id of a job or array.", metavar="JOB")],
    reason: Annotated[str, typer.Option(help="For the record.")] = "",
    pool: Annotated[str | None, typer.Option(help="Where, while reads are away.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until it has ended.")] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Stop a job, or every job of an array, whatever its phase."""
    client = api(data)
    wish: Body = {"reason": reason, **({"pool": pool} if pool else {})}
    ticket = client.post(f"/v1/jobs/{part(job)}/cancel", wish)
    answer = answered(client, ticket) if wait else {}
    word = "cancelled" if answer else "is asked to stop"
    report(as_json, {"job_id": job, **ticket, "answer": answer or None}, f"{job} {word}")


def logs(
    job: JobArgument,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as it prints.")] = False,
    tail: Annotated[int, typer.Option(min=1, max=10000, help="The last lines only.")] = 1000,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """What the job's workers printed."""
    path, client = f"/v1/jobs/{part(job)}/logs", api(data)
    if not follow:
        found = client.get(path, {"tail": tail})
        printed = cast("list[Json]", found["lines"])
        if as_json:
            emit(found)
        else:
            lines(_line(each) for each in printed)
        return
    for event, text in client.stream(path, {"follow": "true"}):
        each = json.loads(text)
        if event == "end":
            if each.get("reason") not in (None, "", "ended"):
                raise CliError(f"the stream ended: {each.get('reason')}")
            return
        lines([text] if as_json else [_line(each)])


def _line(printed: Json) -> str:
    return f"[{printed['attempt']}/{printed['rank']}] {text_of(printed['text'])}"
