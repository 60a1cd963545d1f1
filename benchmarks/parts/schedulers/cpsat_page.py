"""The section on CP-SAT of the page of schedulers, from the JSON alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.parts.goals import met
from benchmarks.parts.markdown import table
from benchmarks.parts.schedulers.over_seeds import range_of

HEAD = """
## Plans by CP-SAT

The live deciders on a virtual clock, first come, first served, without preemption: a pool with
`solver` = `greedy` against one with `cpsat`
([0080](../decisions/0080-a-plan-knows-types-links-and-the-next-gpus.md)). Greedy is best fit and
knows neither types nor racks. Replays have {jobs:,} jobs each, drawn by their seed (60 s to 24 h).

- **Types**: arrivals, durations and gangs of Philly, models of Gavel's table whose speeds jobs
  declare (`gpu_speeds`), {of_type} nodes with {gpus} GPUs of each of V100, P100 and K80; the load
  as in the section on types.
- **Links**: jobs of Philly with several GPUs, a worker on each, on {racks} racks of {nodes} nodes
  with {gpus} GPUs; trainings as in the section on topology, whose speeds over racks and the spine
  jobs declare (`spread_speeds`). Gangs are alone on their links here. Load 0.7.
- **Parts of GPUs**: jobs of Alibaba's trace of 2023 with cores and memory on {share} nodes with
  {gpus} GPUs, load 1.
- **Equal nodes**: jobs of Philly with whole GPUs that declare nothing, load 0.9: a control,
  without a goal.

A job that declares speeds may wait for better GPUs that should be free soon: by the run times that
priority predicts from jobs that ended before, where jobs declare none; with declared run times,
which are the true ones here, by these.

Seeds {seeds}; intervals are 95 % of the mean over replays by bootstrap, those of the gain paired
by seed. Calls of the solver, the part of them whose plan was better than greedy's, and CPU are per
replay.

"""
FOOT = """
Goal: at least {goal:.0%} less JCT where nodes differ for jobs, with an interval that excludes none.
Where a row misses it, CP-SAT costs its calls and gives nothing that can be distinguished from none.
The look-ahead was chosen on the seeds {chosen}, which count in no figure.
"""
NAMES = {"greedy": "greedy", "cpsat": "CP-SAT", "look_ahead": "CP-SAT, declared run times"}


def cpsat_section(own: dict[str, Any]) -> Iterator[str]:
    if "skipped" in own:
        yield f"\n## Plans by CP-SAT\n\nNot run: {own['skipped']}.\n"
        return
    racks, nodes = own["racks"]
    yield HEAD.format(
        jobs=own["jobs"],
        of_type=own["nodes_of_type"],
        gpus=own["gpus_of_node"],
        racks=racks,
        nodes=nodes,
        share=own["share_nodes"],
        seeds=range_of(own["seeds"]),
    )
    head = ("world", "planner", "mean JCT, h", "JCT to greedy", "goal", "calls", "better", "CPU, s")
    yield table(head, _rows(own["worlds"]))
    yield FOOT.format(goal=own["goal"], chosen=range_of(own["chosen_seeds"]))


def _rows(worlds: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for world, rows in worlds.items():
        for planner, row in rows.items():
            jct = row["jct_h"]
            yield (
                world,
                NAMES[planner],
                f"{jct['mean']:.2f} ({jct['low']:.2f} to {jct['high']:.2f})",
                _gain(row["gain"]) if "gain" in row else "-",
                met(row["met"]) if "met" in row else "-",
                f"{row['calls']:.0f}",
                f"{row['improved']:.0%}" if row["calls"] else "-",
                f"{row['cpu_s']:.2f}",
            )


def _gain(gain: dict[str, float]) -> str:
    mean, low, high = (0.0 - gain[key] for key in ("mean", "low", "high"))
    return f"{mean:+.1%} ({high:+.1%} to {low:+.1%})"
