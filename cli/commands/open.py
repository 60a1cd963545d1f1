"""`berth open`: a recorded simulation behind the API and commands of an installation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.api.answers import report
from cli.api.target import SIMULATION_DATA, data_dir
from cli.commands.stack import stay
from cli.errors import BadInput, Refused
from cli.input.arguments import AsJson
from cli.text.output import report_line, working

if TYPE_CHECKING:
    from cli.stack.recorded import Overview
    from infra.supervisor.running import RunningStack
    from simulator.engine.recording import RecordedReport, Recording


def open_(
    folder: Annotated[
        Path, typer.Argument(help="Directory of `berth simulate --out`.", metavar="DIR")
    ],
    data: Annotated[Path, typer.Option(help="Data directory of the stack.")] = SIMULATION_DATA,
    until: Annotated[
        float | None,
        typer.Option(
            min=0, help="Cluster seconds after the first submission; defaults to the end."
        ),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return once the stack is ready.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the API; 0 selects a free one.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Open a recorded simulation: `jobs`, `why`, `queue`, `verify`, ... and the API read it.

    The simulation is read-only: commands are refused. `berth down` or Ctrl-C stops the stack.
    """
    from cli.stack import recorded
    from infra.supervisor import supervise
    from simulator.engine.recording import InvalidRecording, last_moment_ms, open_recording

    try:
        recording = open_recording(folder)
    except InvalidRecording as error:
        raise BadInput(str(error)) from None
    if supervise.is_running(data):
        raise Refused(
            f"a stack is already running in {data}; stop it with `berth down --data {data}`"
        )
    until_ms = None if until is None else recording.moment_ms(until)
    try:
        last_ms = last_moment_ms(folder, recording, until_ms)
        stack = supervise.up(recorded.options(data, port, not detach, last_ms), report_line)
        with working("copying", as_json) as progress:
            stack, overview = recorded.show(stack, folder, recording, until_ms, progress)
        _report_opened(stack, folder, recording, overview, as_json)
        if not detach:
            report_line("press Ctrl-C to stop")
            stay(data)
    except BaseException:
        supervise.down(data)
        raise


def _report_opened(
    stack: RunningStack, folder: Path, recording: Recording, overview: Overview, as_json: bool
) -> None:
    from cli.stack.addresses import address_lines, monitoring_addresses

    document = {
        "api": stack.gateway,
        "data": str(stack.data_dir),
        "simulation": str(folder),
        "jobs": overview.phases,
        "waited_longest": overview.waited_longest,
        "report": recording.report.model_dump(),
    }
    shown = [
        f"API {stack.gateway}",
        f"key {stack.data_dir / 'operator.key'}",
        *address_lines(stack),
        _describe(recording.report),
        _phases(overview),
        _suggest(stack, overview.waited_longest),
    ]
    report(as_json, document | monitoring_addresses(stack), *shown)


def _describe(recording: RecordedReport) -> str:
    """Return one line on the simulation and the scale of its clock."""
    return (
        f"{recording.jobs} jobs on {recording.nodes} nodes x {recording.gpus_per_node} GPUs,"
        f" {recording.learned or recording.policy}, {recording.mode};"
        f" 1 s of the pool's clock is {recording.time_scale:g} s of the cluster's"
    )


def _phases(overview: Overview) -> str:
    counts = ", ".join(f"{count} {phase}" for phase, count in overview.phases.items())
    return f"jobs: {counts or 'none yet'}"


def _suggest(stack: RunningStack, job: str) -> str:
    """Return the suggested commands, with BERTH_HOME if another stack would be used."""
    commands = f"berth jobs, berth why {job or 'JOB'}, berth queue, berth events, berth verify"
    if data_dir(None).resolve() == stack.data_dir:
        return f"try in another terminal: {commands}"
    return f"try: export BERTH_HOME={stack.data_dir}; {commands}"
