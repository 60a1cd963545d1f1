"""`berth logs`: the output of a job, and what `berth submit --follow` shows of it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, cast

import typer

from berth_client.calls import Query
from berth_client.following import NewLines
from cli.api.answers import api
from cli.api.http import Api, Json, part
from cli.api.ids import job_id
from cli.commands.jobs import JobArgument
from cli.commands.node_hints import silence_lines
from cli.errors import CliError
from cli.input.arguments import AsJson, Data
from cli.text.open_line import OpenLine
from cli.text.output import emit, lines, report_line, text_of
from cli.text.reasons import wait_line

if TYPE_CHECKING:
    from berth_client.answers import JobLine


def logs(
    job: JobArgument,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Keep printing new output until the job ends.")
    ] = False,
    tail: Annotated[
        int,
        typer.Option(min=1, max=10000, help="Number of lines, from the last; not with --follow."),
    ] = 1000,
    rank: Annotated[int | None, typer.Option(min=0, help="The lines of this rank alone.")] = None,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="The lines of this attempt alone.")
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Print the output of a job's workers, which their pool keeps for `logs_kept_d` days.

    Of a line that its program wrote anew, such as a bar of progress, the last state is printed.
    Lines that are missing are reported on stderr.

    With --follow it begins with the first line and ends with the job, in whatever pools it is,
    goes on after an outage of the gateway of up to a minute, and reports on stderr while the job
    waits or its node is silent.
    The exit code is 1 where the end of the output did not come.
    """
    client = api(data)
    job = job_id(client, job)
    chosen: Query = {"rank": rank, "attempt": attempt}
    if follow:
        follow_output(client, job, as_json, chosen=chosen)
        return
    document = client.get(f"/v1/jobs/{part(job)}/logs", {"tail": tail, **chosen})
    printed = cast("list[Json]", document["lines"])
    if as_json:
        emit(document)
    elif printed:
        new = NewLines()
        for frame in printed:
            _print_new(frame, new, as_json)
    else:
        report_line(_no_output(client.get(f"/v1/jobs/{part(job)}")))


def follow_output(
    client: Api, job: str, as_json: bool, shown: str = "", chosen: Query | None = None
) -> None:
    """Print the output of a job as it comes, until the job and its output have ended.

    States are reported on stderr where they differ from the line that was `shown` last: without one
    only waits, and what follows them. Raises CliError for a stream that ends before the output.
    """
    query: Query = {"follow": "true", "status": "true", **(chosen or {})}
    opened = None if as_json or not sys.stdout.isatty() else OpenLine()
    if opened is not None:
        query = {**query, "open_lines": "true"}
    new, pool = NewLines(), ""
    for event, text, _ in client.follow(f"/v1/jobs/{part(job)}/logs", query, report_line):
        frame = json.loads(text)
        if opened is not None:
            opened.clear()
        if event == "open":
            if opened is not None:
                opened.show(_line(frame))
        elif event == "status":
            if pool not in ("", there := str(frame.get("pool") or pool)):
                report_line(f"the job goes on in pool {there}; its attempts there begin with 1")
            pool = there
            shown = report_wait(client, frame, shown)
        elif event == "end":
            _check_end(job, frame)
            return
        else:
            _print_new(frame, new, as_json)


def _print_new(frame: Json, new: NewLines, as_json: bool) -> None:
    """Print a line of output that was not printed yet; report on stderr lines that are missing."""
    missing = new.missing_before(cast("JobLine", frame))
    if missing is None:
        return
    if missing:
        worker = f"{frame['attempt']}/{frame['rank']}"
        report_line(f"{missing} lines of worker {worker} are missing here")
    if as_json:
        emit(frame)
    else:
        lines([_line(frame)])


def _check_end(job: str, frame: Json) -> None:
    """Raise CliError for a stream that ended before the output did."""
    reason = frame.get("reason")
    if reason == "output_missing":
        workers = ", ".join(map(str, cast("list[int]", frame["workers"])))
        raise CliError(
            f"the job has ended, and the end of its output is missing (worker {workers}): the node "
            f"is silent; `berth logs {job}` shows what it sends later"
        )
    if reason not in (None, "", "ended"):
        raise CliError(f"the stream ended: {reason}")


def report_wait(client: Api, status: Json, shown: str) -> str:
    """Report a job that waits, or runs after it did, once; return the line that was shown last."""
    line = wait_line(status, is_shown=bool(shown))
    if line and line != shown:
        report_line(line)
        for text in silence_lines(client, status.get("silent_nodes")):
            report_line(text)
    return line or shown


def _no_output(document: Json) -> str:
    """Return why there are no lines."""
    if document.get("backend") == "virtual":
        return "no output: virtual nodes run no program"
    if document.get("started_at"):
        return "no output"
    return f"no output: the job has not started, phase {document['phase']}; see `berth why JOB`"


def _line(printed: Json) -> str:
    return f"[{printed['attempt']}/{printed['rank']}] {text_of(printed['text'])}"
