"""`berth pipeline`: schedules of pipeline-parallel training under slow links."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.errors import BadInput, CliError
from cli.input.arguments import AsJson
from cli.input.choices import check_choice
from cli.input.numbers import parse_floats, parse_integers
from cli.text.output import emit, lines, table

if TYPE_CHECKING:
    from shared.pipeline.model import Pipeline
    from shared.pipeline.schedules import PlannedSchedule

pipeline = typer.Typer(help="Schedules of pipeline-parallel training.")


@pipeline.callback()
def group() -> None:
    """Schedules of pipeline-parallel training."""


@pipeline.command()
def plan(
    stages: Annotated[int, typer.Option(help="Pipeline stages.")],
    microbatches: Annotated[int, typer.Option(help="Micro-batches of an iteration.")],
    forward: Annotated[str, typer.Option(help="Forward time, ms; one, or one per stage: 10,12.")],
    backward: Annotated[str, typer.Option(help="Backward time for the input gradient, ms.")],
    weight: Annotated[
        str | None,
        typer.Option(help="Backward time for the weights, ms.", show_default="that of --backward"),
    ] = None,
    link_delay: Annotated[
        str, typer.Option(help="One-way delay of each hop between stages, ms.")
    ] = "0",
    memory: Annotated[
        str | None, typer.Option(help="Activations that a stage can hold.", show_default="no bound")
    ] = None,
    schedule: Annotated[
        list[str] | None,
        typer.Option(help="1f1b, zb_h1, zb_h2 or adapted; may be repeated.", show_default="all"),
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="File for a drawing of the timelines.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print order, memory and iteration time of each schedule under the delays.

    The zero-bubble schedules are planned without the delays, `adapted` with them.
    """
    from shared.pipeline.model import PipelineError, checked
    from shared.pipeline.schedules import NAMES, plan

    try:
        model = checked(
            stages,
            microbatches,
            parse_floats("--forward", forward),
            parse_floats("--backward", backward),
            parse_floats("--weight", weight or backward),
            parse_floats("--link-delay", link_delay),
            parse_integers("--memory", memory) if memory else (),
        )
    except PipelineError as error:
        raise BadInput(f"--{str(error).replace('_', '-', 1)}") from None
    for name in schedule or ():
        check_choice("--schedule", name, NAMES)
    planned = [plan(model, name) for name in NAMES if not schedule or name in schedule]
    if svg is not None:
        _draw(svg, planned)
    if as_json:
        emit({"pipeline": _shape(model), "schedules": [_row(one) for one in planned]})
    else:
        _show(planned)


def _draw(file: Path, planned: list[PlannedSchedule]) -> None:
    from shared.pipeline.drawing import draw

    try:
        file.write_text(draw(planned), encoding="utf-8")
    except OSError as error:
        raise CliError(f"--svg: {file}: {error.strerror}") from None


def _shape(model: Pipeline) -> dict[str, Any]:
    return {
        "stages": model.stages,
        "microbatches": model.microbatches,
        "forward_ms": model.forward,
        "backward_ms": model.backward,
        "weight_ms": model.weight,
        "link_delay_ms": model.link_delay,
        "memory": model.memory,
    }


def _row(planned: PlannedSchedule) -> dict[str, Any]:
    timeline = planned.timeline
    return {
        "schedule": planned.name,
        "iteration_ms": timeline.makespan,
        "idle_share": round(timeline.idle_share(), 4),
        "warmup": planned.warmup,
        "peak_activations": timeline.peak_activations(),
        "peak_weight_gradients": timeline.peak_weight_gradients(),
        "operations": [[f"{kind}{m}" for kind, m in order] for order in planned.orders],
    }


def _show(planned: list[PlannedSchedule]) -> None:
    columns = ("SCHEDULE", "ITERATION MS", "IDLE", "WARM-UP", "ACTIVATIONS", "WEIGHTS WAITING")
    table(columns, (_cells(_row(one)) for one in planned))
    last = planned[-1]
    lines(["", f"operations of {last.name}, by stage:"])
    lines(
        f"{stage}: {' '.join(operations)}"
        for stage, operations in enumerate(_row(last)["operations"])
    )


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    counts = (row["warmup"], row["peak_activations"], row["peak_weight_gradients"])
    return (
        row["schedule"],
        f"{row['iteration_ms']:.10g}",
        f"{row['idle_share']:.1%}",
        *(",".join(map(str, count)) for count in counts),
    )
