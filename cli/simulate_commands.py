"""`berth simulate`: a workload through the live deciders on a virtual clock; no stack needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.arguments import AsJson
from cli.errors import BadInput
from cli.output import console, emit, lines, table

if TYPE_CHECKING:
    from shared.bus.memory import MemoryBroker
    from simulator.engine.options import SimulationOptions
    from simulator.workload.rows import WorkloadJob

SHOWN = 50

Progress = Callable[[int, int], None]


def simulate(
    trace: Annotated[
        str, typer.Option(help="A trace file, a name of a shared trace, or `synthetic`.")
    ] = "synthetic",
    jobs: Annotated[int | None, typer.Option(min=2, help="Only the first N by time.")] = None,
    skip: Annotated[int, typer.Option(min=0, help="Leave out the first N.")] = 0,
    policy: Annotated[str, typer.Option(help="Base order: fcfs, saf, wfp3, las, ...")] = "fcfs",
    runtime: Annotated[str, typer.Option(help="user, history or oracle.")] = "history",
    mode: Annotated[str, typer.Option(help="strict, skip or easy.")] = "skip",
    preemption: Annotated[str, typer.Option(help="class or ranked.")] = "class",
    learned: Annotated[str | None, typer.Option(help="Learned policy over the base.")] = None,
    solver: Annotated[str, typer.Option(help="greedy or cpsat.")] = "greedy",
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Nodes; default: as many as the load asks for.")
    ] = None,
    gpus_per_node: Annotated[int, typer.Option(min=1, max=64)] = 8,
    load: Annotated[
        float | None,
        typer.Option(min=0.01, max=10, help="Offered load; with --nodes arrivals are stretched."),
    ] = None,
    last_share: Annotated[
        float, typer.Option(min=0.01, max=1.0, help="Part of the time that is evaluated.")
    ] = 0.4,
    time_scale: Annotated[
        float, typer.Option(min=0.001, max=1e6, help="Cluster s per s of the pool's clock.")
    ] = 60.0,
    restart: Annotated[
        float, typer.Option(min=0, help="Cluster s a start after a stop costs.")
    ] = 60,
    checkpoint: Annotated[
        float, typer.Option(min=0, help="Cluster s between checkpoints; 0: none are made.")
    ] = 300,
    residency: Annotated[
        float, typer.Option(min=0, help="Cluster s before rank stops a job.")
    ] = 300,
    margin: Annotated[
        float | None, typer.Option(min=0, help="Score by which a job must lead.")
    ] = None,
    large_gang_share: Annotated[
        float, typer.Option(min=0.01, max=1, help="Of the pool; see the pool setting.")
    ] = 0.25,
    defragment_after: Annotated[
        float, typer.Option(min=0, max=1e9, help="Cluster s before a job moves for a larger one.")
    ] = 1800,
    walltime: Annotated[
        str, typer.Option(help="What jobs say of their run time: none, trace or oracle.")
    ] = "none",
    failures: Annotated[bool, typer.Option("--failures", help="Nodes die and return.")] = False,
    faults: Annotated[
        str | None, typer.Option(help="Failures from this file of faults instead of the seed.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the synthetic workload and the failures.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the ledgers; `berth open` shows it.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Judge the ledgers by the rules of berth verify.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Replay a workload through the live deciders in virtual time and measure what came of it."""
    from simulator.engine.options import SimulationOptions

    options = _checked(
        lambda: SimulationOptions(
            policy=policy,
            runtime=runtime,
            mode=mode,
            preemption=preemption,
            learned=learned,
            solver=solver,
            nodes=nodes,
            gpus_per_node=gpus_per_node,
            load=load,
            last_share=last_share,
            time_scale=time_scale,
            restart_s=restart,
            checkpoint_s=checkpoint or None,
            residency_s=residency,
            margin=margin,
            large_gang_share=large_gang_share,
            defragment_after_s=defragment_after,
            walltime=_walltime(walltime),
            failures=failures or faults is not None,
            seed=seed,
            faults=_faults(faults),
        )
    )
    found, broker = _run(_workload(trace, jobs, skip, seed), options, out, verify, as_json)
    violations = _judged(found, broker) if broker is not None and verify else []
    if broker is not None and out is not None:
        _write(found, broker, out)
    if as_json:
        emit(found)
    else:
        _show(found, violations)
    if violations:
        raise typer.Exit(1)


def _checked(make: Callable[[], SimulationOptions]) -> SimulationOptions:
    """Options that the pool's contract accepts: everything else is said before anything runs."""
    from pydantic import ValidationError

    from simulator.engine.models import load_models
    from simulator.engine.options import configure_pool

    options = make()
    try:
        load_models(configure_pool(options))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadInput(f"{where}: {first['msg']}, not {first['input']!r}") from None
    except ValueError as error:
        raise BadInput(str(error)) from None
    return options


def _walltime(text: str) -> Any:
    if text not in ("none", "trace", "oracle"):
        raise BadInput(f"--walltime: must be none, trace or oracle, not {text!r}")
    return text


def _faults(name: str | None) -> list[tuple[str, float, float]]:
    from simulator.engine.failures import read_faults
    from simulator.workload.errors import TraceError

    try:
        return read_faults(name) if name is not None else []
    except TraceError as error:
        raise BadInput(str(error)) from None


def _workload(trace: str, jobs: int | None, skip: int, seed: int) -> list[WorkloadJob]:
    from cli.replay.workload import workload

    found = workload(trace, None if jobs is None else jobs + skip, seed)[skip:]
    if len(found) < 2:
        raise BadInput(f"{trace}: {len(found)} jobs are left; a simulation needs at least 2")
    return found


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
    with _bar(as_json) as told:
        done = run(scenario, ledgers=verify or out is not None, progress=told)
    if done.broker is not None:
        publish(done.broker)
    return report(done, sizing, options), done.broker


def _judged(found: dict[str, Any], broker: MemoryBroker) -> list[str]:
    from simulator.engine.publishing import verify_ledgers

    judged = asyncio.run(verify_ledgers(broker))
    told = [f"{each.rule}: {each.where}: {each.what}" for each in judged.violations]
    found["verify"] = "failed" if told else "ok"
    found["violations"] = told
    found["rules"] = judged.rules
    return told


def _write(found: dict[str, Any], broker: MemoryBroker, out: Path) -> None:
    from simulator.engine.recording import record

    try:
        found["files"] = [str(path) for path in record(broker, out, found)]
    except OSError as error:
        raise BadInput(f"--out: {error}") from None


def _show(found: dict[str, Any], violations: list[str]) -> None:
    lines(
        [
            f"{found['jobs']} jobs on {found['nodes']} nodes x {found['gpus_per_node']} GPUs,"
            f" offered load {found['load']:.3f}; {found['policy']} ({found['knows']}),"
            f" {found['mode']}, preemption {found['preemption']}"
        ]
    )
    table(("SECONDS", "MEAN", "MEDIAN", "P90", "P99"), _rows(found["window"]))
    window, everybody = found["window"], found["all"]
    lines(
        [
            f"evaluated: {window['jobs']} of {everybody['jobs']} jobs; unfinished"
            f" {everybody['unfinished']}, never fit {everybody['never_fit']}",
            f"utilisation {_share(found['utilisation'])}, fragmentation"
            f" {_share(found['fragmentation'])}, makespan {_number(found['makespan_s'])} s,"
            f" preemptions {found['preemptions']}, lost {_share(found['lost_share'])}",
            f"{found['jobs_per_cpu_s']:g} jobs per CPU-second",
        ]
    )
    if "verify" in found:
        lines([f"verify: {found['verify']}", *violations[:SHOWN]])


def _rows(window: dict[str, Any]) -> Iterator[list[str]]:
    names = {"jct_s": "completion", "wait_s": "first wait", "queued_s": "all waits"}
    for key, name in (names | {"slowdown": "slowdown (x)"}).items():
        yield [name, *(_number(value) for value in window[key].values())]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


@contextmanager
def _bar(silent: bool) -> Iterator[Progress]:
    """A bar on a terminal; nothing elsewhere."""
    shown = console(stderr=True)
    if silent or not shown.is_terminal:
        yield lambda done, jobs: None
        return
    from rich.progress import Progress as Bar

    with Bar(console=shown, transient=True) as bar:
        task = bar.add_task("simulating", total=None)
        yield lambda done, jobs: bar.update(task, completed=done, total=jobs)
