"""`berth open`: a recorded simulation behind the same API and commands as a live installation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.arguments import AsJson
from cli.calls import report
from cli.errors import BadInput, Refused
from cli.output import say, working
from cli.stack_commands import stay
from cli.target import SIMULATION_DATA, data_dir

if TYPE_CHECKING:
    from cli.recorded import Sight
    from infra.supervisor.running import RunningStack
    from simulator.engine.recording import RecordedReport, Recording


def open_(
    folder: Annotated[Path, typer.Argument(help="Of `berth simulate --out`.", metavar="DIR")],
    data: Annotated[
        Path, typer.Option(help="Folder of the stack that shows it.")
    ] = SIMULATION_DATA,
    until: Annotated[
        float | None,
        typer.Option(
            min=0, help="As it was so many cluster seconds after the first submission; or its end."
        ),
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Return once it is ready.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the API; 0: any.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Look at a simulation: `jobs`, `why`, `queue`, `verify`, ... and the API work on it.

    Nothing in it can be changed: who submits, cancels or configures is refused. The folder is only
    read; `berth down` or Ctrl-C ends the stack.
    """
    from cli import recorded
    from infra.supervisor import supervise
    from simulator.engine.recording import InvalidRecording, open_recording

    try:
        recording = open_recording(folder)
    except InvalidRecording as error:
        raise BadInput(str(error)) from None
    if supervise.is_running(data):
        raise Refused(f"a stack runs in {data} already; `berth down --data {data}` stops it")
    until_ms = None if until is None else recording.moment_ms(until)
    try:
        stack = supervise.up(recorded.options(data, port, not detach), say)
        with working("copying", as_json) as told:
            stack, sight = recorded.show(stack, folder, recording, until_ms, told)
        _tell(stack, folder, recording, sight, as_json)
        if not detach:
            say("Ctrl-C closes it")
            stay(data)
    except BaseException:
        supervise.down(data)
        raise


def _tell(
    stack: RunningStack, folder: Path, recording: Recording, sight: Sight, as_json: bool
) -> None:
    from cli.watching import watched, watching

    told = {
        "api": stack.gateway,
        "data": str(stack.data_dir),
        "simulation": str(folder),
        "jobs": sight.phases,
        "waited_longest": sight.waited_longest,
        "report": recording.report.model_dump(),
    }
    shown = [
        f"API {stack.gateway}",
        f"key {stack.data_dir / 'operator.key'}",
        *watching(stack),
        _what(recording.report),
        _seen(sight),
        _where(stack, sight.waited_longest),
    ]
    report(as_json, told | watched(stack), *shown)


def _what(found: RecordedReport) -> str:
    """Of its clock as well: 40 s of waiting in `berth why` are 40 s of that clock."""
    return (
        f"{found.jobs} jobs on {found.nodes} nodes x {found.gpus_per_node} GPUs,"
        f" {found.learned or found.policy}, {found.mode};"
        f" 1 s of the pool's clock is {found.time_scale:g} s of the cluster's"
    )


def _seen(sight: Sight) -> str:
    said = ", ".join(f"{count} {phase}" for phase, count in sight.phases.items())
    return f"shown: {said or 'no jobs yet'}"


def _where(stack: RunningStack, job: str) -> str:
    """Commands find it by themselves, unless another stack is found first."""
    tried = f"berth jobs, berth why {job or 'JOB'}, berth queue, berth events, berth verify"
    if data_dir(None).resolve() == stack.data_dir:
        return f"now in another terminal: {tried}"
    return f"now: export BERTH_HOME={stack.data_dir}; {tried}"
