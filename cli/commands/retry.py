"""`berth retry`: submit ended jobs again."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from berth_client.waiting import ANSWER_S
from cli.api.answers import api, await_answer, pages, report
from cli.api.http import Api, Json, part
from cli.api.ids import job_id
from cli.commands.jobs import JobArgument
from cli.errors import NotFound, Refused, TooManyRequests
from cli.input.arguments import AsJson, Data
from cli.text.output import report_line

ARRAY_MOST = 10_000


def retry(
    job: JobArgument,
    failed: Annotated[
        bool, typer.Option("--failed", help="JOB is an array: repeat its failed jobs, once each.")
    ] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Submit an ended job again: a new job with the same command, variables and resources.

    It prints the new job id. A job of an array keeps its BERTH_ARRAY_INDEX. `--failed` can be
    repeated: a job that it has submitted again already is not submitted twice.
    """
    client = api(data)
    job = job_id(client, job)
    if failed:
        _retry_failed(client, job, as_json)
        return
    ticket = _send(client, job, {})
    await_answer(client, ticket)
    report(as_json, {**ticket, "retry_of": job}, str(ticket["job_id"]))


def _retry_failed(client: Api, array: str, as_json: bool) -> None:
    """Repeat the failed jobs of an array. Raises Refused in the end if some are refused."""
    query = {"array": array, "phase": "failed"}
    rows = pages(client, "/v1/jobs", query, ARRAY_MOST)
    if not rows:
        raise NotFound(f"{array}: no job of this array has failed")
    tickets, repeated, refused = list[Json](), list[str](), list[str]()
    for row in reversed(rows):
        name = str(row["job_id"])
        try:
            ticket = _send(client, name, {"idempotency_key": f"attempt-{row['attempt']}"})
            answer = await_answer(client, ticket)
        except (NotFound, Refused) as error:
            refused.append(f"{name}: {error}")
            continue
        tickets.append({**ticket, "retry_of": name})
        if answer.get("duplicate"):
            repeated.append(str(ticket["job_id"]))
        if not as_json:
            report(False, None, str(ticket["job_id"]))
    if as_json:
        report(True, tickets)
    if repeated:
        report_line(f"submitted before: {', '.join(repeated)}; `berth retry JOB` repeats one again")
    if refused:
        raise Refused("; ".join(refused))


def _send(client: Api, job: str, body: Json) -> Json:
    """Submit a job again, for a while also where the gateway is busy with others."""
    ends_s = time.monotonic() + ANSWER_S
    while True:
        try:
            return client.post(f"/v1/jobs/{part(job)}/retry", body)
        except TooManyRequests as error:
            if time.monotonic() + error.retry_after_s > ends_s:
                raise
            time.sleep(error.retry_after_s)
