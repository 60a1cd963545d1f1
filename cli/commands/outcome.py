"""The end of submitted jobs: `berth submit --wait` waits for it, `--follow` shows all before it."""

from __future__ import annotations

import time
from typing import cast

from cli.api.answers import Watch, await_answer
from cli.api.http import Api, Json, part
from cli.commands.jobs import ENDS
from cli.commands.logs import follow_output
from cli.errors import FAILED, INTERRUPTED, CliError
from cli.text.failures import failure_lines, failure_of
from cli.text.nodes import backend_text
from cli.text.output import emit, report_line

WAIT_S = 0.3
LOOKS_BEFORE_NOTE = 10
"""Looks after which a wait says what it waits for."""


def follow_job(client: Api, ticket: Json, as_json: bool) -> int:
    """Show states and output of the one submitted job until it has ended; return its exit status.

    That of a job that did not succeed is its exit code, 1 if it has none. Ctrl-C ends the watching
    alone: the job goes on.
    """
    job = str(ticket["job_id"])
    try:
        report_line(submitted := f"submitted: {job}")
        await_answer(client, ticket)
        try:
            follow_output(client, job, as_json, submitted)
        except CliError as error:
            report_line(str(error))
        phases = ended(client, ticket)
    except KeyboardInterrupt:
        _report_detached(ticket)
        return INTERRUPTED
    if as_json:
        emit({**ticket, "jobs": phases})
    explain_failures(client, phases)
    mark_virtual(client, job)
    report_line(f"{job}: {phases[job]}")
    if phases[job] == "succeeded":
        return 0
    return int(str(client.get(f"/v1/jobs/{part(job)}").get("exit_code") or FAILED))


def wait_for_ends(client: Api, ticket: Json) -> dict[str, str]:
    """Wait as `ended` does; Ctrl-C ends the waiting alone: the jobs go on."""
    try:
        return ended(client, ticket)
    except KeyboardInterrupt:
        _report_detached(ticket)
        raise


def _report_detached(ticket: Json) -> None:
    """Say on stderr that the jobs go on, and how to come back to them."""
    job, jobs = str(ticket["job_id"]), cast("list[str]", ticket["job_ids"])
    if len(jobs) == 1:
        report_line(f"detached, the job goes on: `berth logs -f {job}` follows it again")
    else:
        report_line(f"detached, the jobs go on: `berth jobs --array {job}` lists them")


def explain_failures(client: Api, phases: dict[str, str]) -> None:
    """Say on stderr why the first failed job of a submission failed."""
    for job_id, phase in phases.items():
        if phase == "failed":
            failure = failure_of(client.get(f"/v1/jobs/{part(job_id)}"))
            for text in failure_lines(failure, job_id) if failure else ():
                report_line(text)
            return


def mark_virtual(client: Api, job: str) -> None:
    """Say on stderr that a job ran on virtual nodes: its end is no result of a program."""
    backend = client.get(f"/v1/jobs/{part(job)}").get("backend")
    if backend == "virtual":
        report_line(f"{job}: nodes: {backend_text(backend)}")


def ended(client: Api, ticket: Json) -> dict[str, str]:
    """Wait until all jobs of the ticket have ended; return their phases.

    A wait that takes a while says what it waits for, once, on stderr.
    """
    await_answer(client, ticket)
    waiting = list(cast("list[str]", ticket["job_ids"]))
    phases: dict[str, str] = {}
    watch = Watch(client)
    looks = 0
    while waiting:
        looks += 1
        if looks == LOOKS_BEFORE_NOTE:
            report_line(f"waiting for {len(waiting)} to end: `berth why {waiting[0]}` says more")
        for job_id in list(waiting):
            phase = str((watch.look(f"/v1/jobs/{part(job_id)}") or {}).get("phase"))
            if phase in ENDS:
                phases[job_id] = phase
                waiting.remove(job_id)
        time.sleep(WAIT_S if waiting else 0)
    return phases
