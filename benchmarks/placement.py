"""Placement rounds: greedy, CP-SAT and RLTune's MILP by HiGHS, objective and CPU time of each.

Contended rounds are taken from replays through the live deciders: whole GPUs (Helios Venus), and
shares, cores and memory (Alibaba GPU 2023); without the shared traces, from the synthetic
workload. The same rounds are solved again as if their pool had three GPU types with measured
throughputs (Gavel's table). `round` is one round of 1,250 nodes x 8 GPUs with 1,000 waiting jobs.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.parts.command import Json, serve
from benchmarks.parts.placement import rltune
from benchmarks.parts.placement.big_round import big_round
from benchmarks.parts.placement.comparison import (
    WORK,
    compare_on_three_types,
    compare_with_greedy,
    compare_with_rltune,
    rounded_percentile,
    solve_all,
)
from benchmarks.parts.placement.options import PlacementBenchOptions
from benchmarks.parts.placement.rounds import scenario, sources, take_rounds
from shared.process.progress import ReportLine
from simulator.engine.run import Simulation, simulate
from simulator.metrics.measures import measure


async def run(options: PlacementBenchOptions, report_line: ReportLine) -> Json:
    """Return one JSON object; times are CPU ms of one process."""
    if options.quick:
        options = replace(options, instances=60, jobs=1200, jct_jobs=0)
    rounds = [
        contended
        for source, share in sources()
        for contended in take_rounds(source, round(options.instances * share), options, report_line)
    ]
    report_line(f"solving {len(rounds)} rounds")
    instances = [contended.instance for contended in rounds]
    solutions, cpsat_ms = solve_all(instances)
    report_line("RLTune's MILP by HiGHS")
    rltune_results = rltune.solve_in_process(instances)
    report_line("one round of 1,250 nodes")
    large = big_round(WORK)
    jct = compare_jct(options, report_line) if options.jct_jobs else None
    greedy_ms = [contended.greedy_ms for contended in rounds]
    export_ms = [contended.export_ms for contended in rounds]
    return {
        "bench": "placement",
        "instances": len(rounds),
        "by_source": {
            name: sum(contended.source == name for contended in rounds) for name, _ in sources()
        },
        "greedy_ms_p50": rounded_percentile(0.5, greedy_ms),
        "greedy_ms_p99": rounded_percentile(0.99, greedy_ms),
        "export_ms_p99": rounded_percentile(0.99, export_ms),
        "cpsat_ms_p50": rounded_percentile(0.5, cpsat_ms),
        "cpsat_ms_p99": rounded_percentile(0.99, cpsat_ms),
        **compare_with_greedy(instances, solutions),
        **compare_with_rltune(instances, solutions, rltune_results),
        "three_gpu_types": compare_on_three_types(instances),
        "round": large,
        "jct": jct,
    }


def compare_jct(options: PlacementBenchOptions, report_line: ReportLine) -> Json:
    """Run the same jobs through the live deciders with greedy and with CP-SAT."""
    source = sources()[0][0]
    figures: Json = {"source": source, "jobs": options.jct_jobs}
    mean_jct_s: dict[str, float] = {}
    for solver in ("greedy", "cpsat"):
        report_line(f"{options.jct_jobs} jobs of {source} with {solver}")
        simulation: Simulation = simulate(scenario(source, options.jct_jobs, options, solver))
        measured = measure(simulation.outcome)
        mean_jct_s[solver] = round(measured.all.jct_s.mean, 1)
        figures[f"{solver}_mean_jct_s"] = mean_jct_s[solver]
        figures[f"{solver}_mean_wait_s"] = round(measured.all.wait_s.mean, 1)
        figures[f"{solver}_cpu_s"] = round(simulation.cpu_s, 1)
    return {**figures, "jct_gain": round(1 - mean_jct_s["cpsat"] / mean_jct_s["greedy"], 5)}


if __name__ == "__main__":
    serve(run, PlacementBenchOptions, __doc__ or "")
