"""The section on topology of the page of schedulers, from the JSON alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.parts.goals import met
from benchmarks.parts.markdown import table
from benchmarks.parts.schedulers.over_seeds import range_of

HEAD = """
## Topology

Arrivals, durations (60 s to 24 h) and sizes of {jobs:,} jobs of {trace} with several GPUs, on
{racks} racks of {nodes} nodes with {gpus} GPUs. Each job is a data-parallel training of ResNet-50,
VGG-16, Transformer big or BERT large, drawn evenly: gradients in four bytes per published
parameter, a computation of 0.1 to 0.5 s a step, and an all-reduce as a ring, half a computation of
which is hidden ([links](../../shared/performance/links.py)). A ring gets {node:g} GB/s in a node,
{rack:g} GB/s in a rack, and over the spine at most that and the uplink of each of its racks, which
the gangs that cross there share ([uplinks](../../simulator/rounds/uplinks.py)). The load without
communication is {load}; each start takes {restart:g} s. Best fit is `fcfs`, which
knows no racks; `closest` is Dally without timers and stops: the closest GPUs that are free, in the
same order.

Seeds {seeds}, each a draw of such jobs and of their models; intervals are 95 % of the mean over
seeds by bootstrap, those of the gain paired by seed. Restarts are per job; communication is the
part of the GPU time in which steps wait for it.

"""
SETTINGS = """
Dally's settings were chosen on the seeds {seeds}, which count in no figure: a first timer of
{first:g} s and {longest:g} s at most, moves and stops from a slowdown of {move:g} on, and at least
{least:g} s on the same GPUs before. Its step times are known exactly, without the other gangs on
the uplinks.
"""
NAMES = {"best_fit": "best fit", "closest": "closest", "dally": "dally"}


def topology_section(own: dict[str, Any]) -> Iterator[str]:
    if "skipped" in own:
        yield f"\n## Topology\n\nNot run: {own['skipped']}.\n"
        return
    racks, nodes, gpus = own["cluster"]
    yield HEAD.format(
        **{name: own[name] for name in ("jobs", "trace", "load")},
        racks=racks,
        nodes=nodes,
        gpus=gpus,
        node=own["node_gb_per_s"],
        rack=own["rack_gb_per_s"],
        restart=own["restart_s"],
        seeds=range_of(own["seeds"]),
    )
    head = ("network", "uplink, GB/s", "scheduler", "mean JCT, h", "restarts")
    yield table((*head, "communication"), _rows(own["networks"]))
    yield "\n"
    yield table(("goal", "result"), _goals(own))
    yield SETTINGS.format(
        seeds=range_of(own["chosen_seeds"]),
        first=own["timers"]["first_s"],
        longest=own["timers"]["longest_s"],
        move=own["rules"]["worth_a_move"],
        least=own["rules"]["least_run_s"],
    )


def _rows(networks: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, network in networks.items():
        uplink = f"{network['uplink_gb_per_s']:g}"
        for scheduler, row in network["rows"].items():
            jct = row["jct_h"]
            yield (
                name,
                uplink,
                NAMES[scheduler],
                f"{jct['mean']:.2f} ({jct['low']:.2f} to {jct['high']:.2f})",
                f"{row['restarts']:.2f}",
                f"{row['communication']:.1%}",
            )


def _goals(own: dict[str, Any]) -> Iterator[tuple[str, str]]:
    goals, networks = own["goals"], own["networks"]
    yield (
        "congested: mean JCT of Dally at least 25 % below best fit",
        f"{met(goals['congested_25_percent_below_best_fit'])}: {_gain(networks['congested'])}",
    )
    yield (
        "fast: within 1 % of best fit",
        f"{met(goals['fast_within_1_percent_of_best_fit'])}: {_gain(networks['fast'])}",
    )
    yield "shared: no goal", _gain(networks["shared"])


def _gain(network: dict[str, Any]) -> str:
    keys = ("mean", "low", "high", "least")
    mean, low, high, least = (0.0 - network["gain"][key] for key in keys)
    return f"{mean:+.1%} ({high:+.1%} to {low:+.1%}), least of a seed {least:+.1%}"
