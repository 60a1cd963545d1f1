"""Figures of the benchmark of agents, their aims, and the page that shows both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from benchmarks.parts.command import Json
from benchmarks.parts.percentiles import percentile


class Aim(NamedTuple):
    """The largest value of a figure that is requested; a dot leads into a nested object."""

    figure: str
    at_most: float
    unit: str


AIMS = (
    Aim("reconnect_s", 10.0, "s"),
    Aim("start_p50_ms", 100.0, "ms"),
    Aim("start_p99_ms", 500.0, "ms"),
    Aim("cpu_per_agent_ms_per_s", 1.0, "ms/s"),
    Aim("agent.rss_mib", 60.0, "MiB"),
    Aim("agent.step_rss_mib", 12.0, "MiB"),
    Aim("agent.step_mib", 12.0, "MiB"),
    Aim("agent.idle_cpu_percent", 1.0, "% of a core"),
    Aim("outage.fenced", 0.0, "agents"),
    Aim("outage.reconnect_s", 20.0, "s"),
)
FURTHER = {
    "join_s": "s until all have joined, heartbeats and placement included",
    "reconnect_at_once_s": "s until all sessions, which ended at once, are open again",
    "order_p50_ms": "ms from the placement of a job to the order at its simulated agent, median",
    "order_p99_ms": "the same, 99th percentile",
    "started": "jobs on the node of the real agent, by which `start` is measured",
    "stages.order_p50_ms": "ms of such a start until the real agent has noted the order, median",
    "stages.world_p50_ms": "ms from there until user, folders and environment are made, median",
    "stages.step_p50_ms": "ms from there until the worker's step lives, median",
    "stages.barrier_p50_ms": "ms from there until the worker may start, median",
    "stages.program_p50_ms": "ms from there until its program runs, median",
    "ready_p50_ms": "ms from the placement of a job to its start in the ledger, median",
    "ready_p99_ms": "the same, 99th percentile",
    "acknowledged_p50_ms": "ms until a heartbeat is acknowledged by the broker, median",
    "acknowledged_p99_ms": "the same, 99th percentile",
    "client_lag_at_starts_p99_ms": "ms by which the simulated agents themselves were late",
    "executor_rss_mib": "MiB of the executor that serves them",
    "control_pss_mib": "MiB of all services, without broker and Postgres",
    "outage.outage_s": "s for which the whole control plane was away, broker and Postgres included",
    "outage.stop_after_s": "s of the lease of the agents in it",
    "outage.longest_unrenewed_s": "longest s in it from a heartbeat to the next acknowledgement",
    "outage.back_s": "s from the end of the outage until the first heartbeat is acknowledged",
    "agent.step_pss_mib": "MiB of a step, files' pages divided among all that use them (PSS)",
    "load_1m": "load average of the machine before: other work on its cores is in the times",
    "agent.interpreter_rss_mib": "MiB of one Python that only waits (`python -I -S`)",
}
"""Figures without an aim that the page shows, and what they are."""


def judge(figures: Mapping[str, object]) -> list[Json]:
    """Return a row per aim; a figure that was not measured is not met."""
    rows: list[Json] = []
    for aim in AIMS:
        value = find_figure(figures, aim.figure)
        met = isinstance(value, int | float) and value <= aim.at_most
        rows.append(
            {
                "figure": aim.figure,
                "measured": value,
                "at_most": aim.at_most,
                "unit": aim.unit,
                "met": met,
            }
        )
    return rows


def find_figure(figures: Mapping[str, object], path: str) -> object:
    """Return a figure; None if it was not measured."""
    value: object = figures
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def quantiles(name: str, times_ms: Iterable[float]) -> Json:
    """Return p50 and p99 in ms, under names that begin with `name`; None without a time."""
    times = list(times_ms)
    return {
        f"{name}_p{round(100 * share)}_ms": round(percentile(times, share), 1) if times else None
        for share in (0.5, 0.99)
    }


def per_agent_ms(spent_s: Mapping[str, float], agents: int, seconds: float) -> dict[str, float]:
    """Return CPU milliseconds per second and agent, by process."""
    return {
        name: round(1000 * value / (agents * seconds), 4) for name, value in sorted(spent_s.items())
    }


def render_page(result: Mapping[str, object], rows: list[Json]) -> str:
    """Return the page for docs/results."""
    lines = [
        "# Agents of nodes against one control plane",
        "",
        f"By `berth bench agents --agents {result['agents']}` on {result['cores']} cores "
        f"({result['broker']} broker, {result['clients']} processes of simulated agents, "
        f"{result['jobs_per_s']:g} jobs/s on their nodes, {result['real_jobs_per_s']:g}/s on that "
        "of one real agent). The agents share the cores with all services. `start` is the time "
        "from the placement of a job in the ledger until its program runs on the real node, "
        "`order` until the order to start it is at a simulated agent; a step is one worker's "
        "supervisor and init: `step_rss_mib` counts what they share twice, `step_mib` once, with "
        "those pages of the interpreter's files that they use in full. "
        "`outage.reconnect_s` is the time from the first heartbeat that is acknowledged after the "
        "outage until all agents are heard again; they wait up to 10 s between two attempts.",
        "",
        "| figure | measured | aim | |",
        "|---|---|---|---|",
        *(
            f"| `{row['figure']}` | {render_measured(row)} | at most {row['at_most']:g} "
            f"{row['unit']} | {'met' if row['met'] else 'not met'} |"
            for row in rows
        ),
        "",
        "| further figure | | |",
        "|---|---|---|",
        *(
            f"| `{name}` | {find_figure(result, name)} | {meaning} |"
            for name, meaning in FURTHER.items()
            if find_figure(result, name) is not None
        ),
        "",
        f"Refused or lost requests, those of the killed executor included: "
        f"{render_faults(result.get('faults'))}. All figures are in `agents.json`.",
    ]
    return "\n".join(lines) + "\n"


def render_measured(row: Mapping[str, object]) -> str:
    measured = row["measured"]
    return "not measured" if measured is None else f"{measured} {row['unit']}"


def render_faults(faults: object) -> str:
    """Return the kinds of failed requests and how often each occurred."""
    counts = faults if isinstance(faults, Mapping) else {}
    return ", ".join(f"{count} x `{fault}`" for fault, count in counts.items()) or "none"
