"""`berth simulate`: replay a workload through the live deciders on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.errors import BadInput
from cli.input.arguments import AsJson
from cli.input.simulation_flags import with_flags
from cli.text.output import console, emit, lines, table
from shared.process.progress import ReportCount

if TYPE_CHECKING:
    from shared.bus.logs.memory import MemoryBroker
    from simulator.engine.options import SimulationOptions
    from simulator.workload.rows import WorkloadJob

SHOWN = 50


@with_flags
def simulate(
    *,
    trace: Annotated[
        str, typer.Option(help="Trace file, name of a shared trace, or `synthetic`.")
    ] = "synthetic",
    jobs: Annotated[int | None, typer.Option(min=2, help="Number of jobs, from the first.")] = None,
    skip: Annotated[int, typer.Option(min=0, help="Number of jobs to skip.")] = 0,
    faults: Annotated[str | None, typer.Option(help="File of node failures to replay.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory for the ledgers, for `berth open`.")
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Verify the resulting ledgers.")] = False,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Simulate a workload with the live deciders in virtual time and print the metrics."""
    checked = _checked(options, faults)
    result, broker = _run(_workload(trace, jobs, skip, checked.seed), checked, out, verify, as_json)
    violations = _judged(result, broker) if broker is not None and verify else []
    if broker is not None and out is not None:
        _write(result, broker, out)
    if as_json:
        emit(result)
    else:
        _show(result, violations)
    if violations:
        raise typer.Exit(1)


def _checked(values: Mapping[str, Any], faults: str | None) -> SimulationOptions:
    """Build and validate the options. Raises BadInput before anything runs."""
    from pydantic import ValidationError

    from simulator.engine.models import load_models
    from simulator.engine.options import SimulationOptions, configure_pool

    changed = {
        "checkpoint_s": values["checkpoint_s"] or None,
        "failures": values["failures"] or faults is not None,
        "faults": _faults(faults),
    }
    options = SimulationOptions(**{**values, **changed})
    try:
        load_models(configure_pool(options))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadInput(f"{where}: {first['msg']}, not {first['input']!r}") from None
    except ValueError as error:
        raise BadInput(str(error)) from None
    return options


def _faults(name: str | None) -> list[tuple[str, float, float]]:
    from simulator.engine.failures import read_faults
    from simulator.workload.errors import TraceError

    try:
        return read_faults(name) if name is not None else []
    except TraceError as error:
        raise BadInput(str(error)) from None


def _workload(trace: str, jobs: int | None, skip: int, seed: int) -> list[WorkloadJob]:
    from cli.replay.workload import workload

    jobs_left = workload(trace, None if jobs is None else jobs + skip, seed)[skip:]
    if len(jobs_left) < 2:
        raise BadInput(f"{trace}: {len(jobs_left)} jobs left; a simulation needs at least 2")
    return jobs_left


def _run(
    jobs: list[WorkloadJob],
    options: SimulationOptions,
    out: Path | None,
    verify: bool,
    as_json: bool,
) -> tuple[dict[str, Any], MemoryBroker | None]:
    from simulator.engine.options import build_scenario
    from simulator.engine.publishing import publish
    from simulator.engine.report import report
    from simulator.engine.run import simulate as run

    try:
        scenario, sizing = build_scenario(jobs, options)
    except ValueError as error:
        raise BadInput(str(error)) from None
    with _bar(as_json) as report_count:
        done = run(scenario, ledgers=verify or out is not None, report_count=report_count)
    if done.broker is not None:
        publish(done.broker)
    return report(done, sizing, options), done.broker


def _judged(result: dict[str, Any], broker: MemoryBroker) -> list[str]:
    from simulator.engine.publishing import verify_ledgers

    report = asyncio.run(verify_ledgers(broker))
    violations = [
        f"{violation.rule}: {violation.position}: {violation.detail}"
        for violation in report.violations
    ]
    result["verify"] = "failed" if violations else "ok"
    result["violations"] = violations
    result["rules"] = report.rules
    return violations


def _write(result: dict[str, Any], broker: MemoryBroker, out: Path) -> None:
    from simulator.engine.recording import record

    try:
        result["files"] = [str(path) for path in record(broker, out, result)]
    except OSError as error:
        raise BadInput(f"--out: {error}") from None


def heading(result: dict[str, Any]) -> str:
    """Return the cluster, the load and the policy of a report in one line."""
    policy, learned = result["policy"], result["learned"]
    order = f"{learned} over {policy}" if learned else policy
    return (
        f"{result['jobs']} jobs on {result['nodes']} nodes x {result['gpus_per_node']} GPUs,"
        f" offered load {result['load']:.3f}; {order} ({result['runtime_source']}),"
        f" {result['mode']}, preemption {result['preemption']}"
    )


def _show(result: dict[str, Any], violations: list[str]) -> None:
    lines([heading(result)])
    table(("SECONDS", "MEAN", "MEDIAN", "P90", "P99"), _rows(result["window"]))
    window, all_jobs = result["window"], result["all"]
    lines(
        [
            f"evaluated: {window['jobs']} of {all_jobs['jobs']} jobs; unfinished"
            f" {all_jobs['unfinished']}, never fit {all_jobs['never_fit']}",
            f"utilisation {_share(result['utilisation'])}, fragmentation"
            f" {_share(result['fragmentation'])}, makespan {_number(result['makespan_s'])} s,"
            f" preemptions {result['preemptions']}, lost {_share(result['lost_share'])}",
            f"{result['jobs_per_cpu_s']:g} jobs per CPU-second",
        ]
    )
    if "verify" in result:
        lines([f"verify: {result['verify']}", *violations[:SHOWN]])


def _rows(window: dict[str, Any]) -> Iterator[list[str]]:
    names = {"jct_s": "completion", "wait_s": "first wait", "queued_s": "all waits"}
    for key, name in (names | {"slowdown": "slowdown (x)"}).items():
        yield [name, *(_number(value) for value in window[key].values())]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


@contextmanager
def _bar(silent: bool) -> Iterator[ReportCount]:
    """Show a progress bar on a terminal; nothing elsewhere."""
    shown = console(stderr=True)
    if silent or not shown.is_terminal:
        yield lambda done, jobs: None
        return
    from rich.progress import Progress as Bar

    with Bar(console=shown, transient=True) as bar:
        task = bar.add_task("simulating", total=None)
        yield lambda done, jobs: bar.update(task, completed=done, total=jobs)
