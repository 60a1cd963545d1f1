"""`berth retry`: submit ended jobs again."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.api.answers import api, await_answer, pages, report
from cli.api.http import Json, part
from cli.api.ids import job_id
from cli.commands.jobs import JobArgument
from cli.errors import NotFound
from cli.input.arguments import AsJson, Data

ARRAY_MOST = 10_000


def retry(
    job: JobArgument,
    failed: Annotated[
        bool, typer.Option("--failed", help="JOB is an array: repeat its failed jobs.")
    ] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Submit an ended job again: a new job with the same command, variables and resources.

    It prints the new job id. A job of an array keeps its BERTH_ARRAY_INDEX.
    """
    client = api(data)
    job = job_id(client, job)
    jobs = [job]
    if failed:
        query = {"array": job, "phase": "failed"}
        jobs = [str(row["job_id"]) for row in pages(client, "/v1/jobs", query, ARRAY_MOST)]
        if not jobs:
            raise NotFound(f"{job}: no job of this array has failed")
    tickets: list[Json] = []
    for name in reversed(jobs):
        ticket = client.post(f"/v1/jobs/{part(name)}/retry")
        await_answer(client, ticket)
        tickets.append({**ticket, "retry_of": name})
        if not as_json:
            report(False, None, str(ticket["job_id"]))
    if as_json:
        report(True, tickets if failed else tickets[0])
